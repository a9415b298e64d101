import { transaction } from '../../models/database/database.ts';
import { endOf } from '../../models/identity/pendingSignIns.ts';
import { isEmail, normalizeEmail } from '../../models/identity/users.ts';
import { newLinkToken } from '../../models/links/links.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { publicLink } from '../frame/links.ts';
import { assertOwnForm } from '../frame/ownForm.ts';
import { sendPage } from '../frame/pages/page.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { signInMail } from './mails.ts';
import { destinationOf, finish, notSetUp } from './signInFlow.ts';
import { followLinkPage, linkMailedPage } from './signInPages.ts';

/** Sign-in by a mailed link. */
export function mailLinkRoutes({ config, database, identity, launcher, limits }: RouteDeps) {
  const router = createRouter();

  router.post('/auth/email', async (req, res) => {
    if (config.signIn.mail === undefined) throw notSetUp();
    assertOwnForm(req, config);
    const form = bodyOf<'mailSignInLink'>(req);
    const to = destinationOf(form, config);
    const email = normalizeEmail(form.email);
    await limits.mail(email, res);
    // This must not reveal whether there is an account: the answer and the work before it, including the row, are the
    // same. Only the worker checks, when it sends the mail.
    if (isEmail(email)) {
      const token = newLinkToken();
      const content = { ...signInMail(email, publicLink(config, `auth/email/${token}`)), onlyIfMayArrive: true };
      const mail = await identity.mails.seal(content, endOf('email', new Date()));
      await transaction(database, async (tx) => {
        await identity.pendingSignIns.begin('email', token, { ...to, email }, tx);
        await identity.mails.store(tx, mail);
      });
      void launcher.startMail(mail.id);
    }
    sendPage(res, linkMailedPage(email));
  });

  router.get('/auth/email/:token', async (req, res) => {
    const { token } = pathOf<'showSignInLink'>(req);
    sendPage(res, followLinkPage(token, await identity.pendingSignIns.peek('email', token)));
  });

  router.post('/auth/email/:token', async (req, res) => {
    assertOwnForm(req, config);
    const { token } = pathOf<'followSignInLink'>(req);
    const { email, ...to } = await identity.pendingSignIns.take('email', token);
    const user = await identity.arrivals.arrive({ email, address: req.ip ?? null });
    finish(res, await identity.codes.create(user.id), to);
  });

  return router;
}
