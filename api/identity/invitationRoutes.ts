import { DomainError } from '../../models/errors.ts';
import { newLinkToken } from '../../models/identity/linkTokens.ts';
import { normalizeEmail } from '../../models/identity/users.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { spaceOf } from '../frame/auth/authorizeSpace.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { publicLink } from '../frame/links.ts';
import { wantsPage } from '../frame/middleware/pageErrors.ts';
import { sendPage } from '../frame/pages/page.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { invitationMail } from './mails.ts';
import { presentInvitation } from './presentInvitation.ts';
import { assertOwnForm, finish } from './signInFlow.ts';
import { invitationPage, signInToJoinPage } from './signInPages.ts';

/** Inviting people into a space, and accepting. */
export function invitationRoutes({ config, identity, launcher }: RouteDeps) {
  const { invitations, mails, users } = identity;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/invitations', async (req, res) => {
    const { spaceId } = pathOf<'listInvitations'>(req);
    const { data, nextCursor } = await invitations.list(spaceId, pageOf(req));
    answer<'listInvitations'>(res, 200, { data: data.map(presentInvitation), nextCursor });
  });

  router.post('/api/spaces/:spaceId/invitations', async (req, res) => {
    const { spaceId } = pathOf<'createInvitation'>(req);
    const { email, role } = bodyOf<'createInvitation'>(req);
    const actor = actorOf(req);
    const token = newLinkToken();
    const link = publicLink(config, `auth/invitations/${token}`);
    const isMailed = config.signIn.mail !== undefined;
    const inviter = (await users.byId(actor.userId))?.name ?? '';
    const facts = { email: normalizeEmail(email), inviter, spaceName: spaceOf(req).space.name, role };
    const mail = isMailed ? await mails.seal(invitationMail(facts, link), invitations.endOf(new Date())) : undefined;
    const made = await invitations.create(spaceId, { email, role, token, isMailed }, actor, async (tx) => {
      if (mail !== undefined) await mails.store(tx, mail);
    });
    if (mail !== undefined) {
      void launcher.startMail(mail.id);
    }
    answer<'createInvitation'>(res, 201, { ...presentInvitation(made), ...(!isMailed && { link }) });
  });

  router.delete('/api/spaces/:spaceId/invitations/:invitationId', async (req, res) => {
    const { spaceId, invitationId } = pathOf<'revokeInvitation'>(req);
    await invitations.revoke(spaceId, invitationId, actorOf(req));
    res.status(204).end();
  });

  router.get('/auth/invitations/:token', async (req, res) => {
    const { token } = pathOf<'showInvitation'>(req);
    sendPage(res, invitationPage(token, await invitations.byToken(token)));
  });

  router.post('/auth/invitations/:token', async (req, res) => {
    const { token } = pathOf<'acceptInvitation'>(req);
    const isPage = wantsPage(req);
    if (isPage) assertOwnForm(req, config);
    const guest = req.caller === undefined ? { credentialId: null, address: req.ip ?? null } : actorOf(req);
    try {
      const { spaceId, role, code } = await identity.acceptInvitation(token, guest);
      if (isPage && code !== undefined) return finish(res, code, {});
      answer<'acceptInvitation'>(res, 200, {
        spaceId,
        role,
        ...(code !== undefined && { code: code.code, expiresAt: time(code.expiresAt) }),
      });
    } catch (error) {
      if (!isPage || !(error instanceof DomainError) || error.code !== 'SIGN_IN_REQUIRED') throw error;
      sendPage(res, signInToJoinPage(error.message));
    }
  });

  return router;
}
