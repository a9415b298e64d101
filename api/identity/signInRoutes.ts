import { DomainError } from '../../base/errors.ts';
import { createIssuer } from '../../integrations/oidc/issuer.ts';
import { newLinkToken } from '../../models/links/links.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { publicLink } from '../frame/links.ts';
import { assertOwnForm } from '../frame/ownForm.ts';
import { sendPage } from '../frame/pages/page.ts';
import { bodyOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { createBrowserCookie } from './browserCookie.ts';
import { destinationOf, finish, forward, notSetUp } from './signInFlow.ts';
import { signedInPage, signInPage } from './signInPages.ts';

/** The sign-in page, and sign-in by OpenID Connect. Each way ends in a one-time code. */
export function signInRoutes({ config, identity, limits }: RouteDeps) {
  const { oidc, mail, redirects } = config.signIn;
  const [codesTo] = redirects;
  const issuer = oidc && createIssuer(oidc, publicLink(config, 'auth/oidc/callback'));
  const browsers = createBrowserCookie(config);
  const router = createRouter();

  router.get('/auth/sign-in', (req, res) => {
    const to = destinationOf(queryOf<'showSignIn'>(req), config);
    sendPage(res, signInPage({ oidc: oidc?.name, mail: mail !== undefined, codesTo }, to));
  });

  router.post('/auth/sign-in', async (req, res) => {
    assertOwnForm(req, config);
    const { code, ...form } = bodyOf<'forwardCode'>(req);
    const to = destinationOf(form, config);
    const redirect = to.redirect ?? codesTo;
    if (redirect !== undefined) return forward(res, code.trim(), { ...to, redirect });
    // No app takes the code, so exchange it here.
    const label = req.headers['user-agent'];
    const token = await limits.guessing(req, res, () =>
      identity.codes.exchange(code.trim(), { label, address: req.ip ?? null }),
    );
    sendPage(res, signedInPage(token, to.returnUrl));
  });

  router.get('/auth/oidc', async (req, res) => {
    if (issuer === undefined) throw notSetUp();
    const to = destinationOf(queryOf<'beginOidc'>(req), config);
    const state = newLinkToken();
    const { url, nonce, codeVerifier } = await issuer.begin(state);
    const browser = browsers.give(req, res);
    await identity.pendingSignIns.begin('oidc', state, { ...to, nonce, codeVerifier, browser });
    res.redirect(303, url.href);
  });

  router.get('/auth/oidc/callback', async (req, res) => {
    if (issuer === undefined) throw notSetUp();
    const { state } = queryOf<'finishOidc'>(req);
    const { browser } = await identity.pendingSignIns.peek('oidc', state);
    // This sign-in belongs to another browser. Keep it for that browser.
    if (!browsers.isOf(req, browser)) throw otherBrowser();
    const { nonce, codeVerifier, ...to } = await identity.pendingSignIns.take('oidc', state);
    const query = req.originalUrl.slice(req.originalUrl.indexOf('?') + 1);
    const { issuer: from, subject, email, name } = await issuer.finish(query, { state, nonce, codeVerifier });
    const proof = { subject: { issuer: from, subject }, email, name, address: req.ip ?? null };
    const user = await identity.arrivals.arrive(proof);
    finish(res, await identity.codes.create(user.id), to);
  });

  return router;
}

function otherBrowser(): DomainError {
  return new DomainError(
    'forbidden',
    'OTHER_BROWSER',
    'This sign-in was started in another browser. Start again in this one.',
  );
}
