import type { Config } from '../../config/index.ts';
import type { AuthCode } from '../../models/identity/authCodes.ts';
import type { InvitationView } from '../../models/identity/invitations.ts';
import type { Destination } from '../../models/identity/pendingSignIns.ts';
import { publicLink } from '../frame/links.ts';
import { type Html, html } from '../frame/pages/html.ts';
import type { Page } from '../frame/pages/page.ts';

/** The ways to sign in at this installation. */
export interface Ways {
  /** The issuer's display name. */
  oidc: string | undefined;
  mail: boolean;
  /** The redirect for a code that is for no particular app. */
  codesTo: string | undefined;
}

/** Where a visitor chooses how to sign in. */
export function signInPage(ways: Ways, to: Destination): Page {
  const parts: Html[] = [];
  if (ways.oidc !== undefined) {
    parts.push(html`<a class="button" href="/auth/oidc${queryOf(to)}">Continue with ${ways.oidc}</a>`);
  }
  if (ways.mail) {
    parts.push(html`<form method="post" action="/auth/email">
${hiddenFields(to)}<label for="email">E-mail address</label>
<input id="email" name="email" type="email" autocomplete="email" required maxlength="254">
<button class="button second">Mail me a sign-in link</button>
</form>`);
  }
  parts.push(codeForm(to));
  const divided = parts.flatMap((part, index) => (index === 0 ? [part] : [html`<p class="or">or</p>`, part]));
  return { title: 'Sign in', body: html`${divided}`, formMayGoTo: to.redirect ?? ways.codesTo };
}

function codeForm(to: Destination): Html {
  return html`<form method="post" action="/auth/sign-in">
${hiddenFields(to)}<label for="code">One-time code</label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" required maxlength="200"
 aria-describedby="code-help">
<button class="button second">Use this code</button>
<p class="quiet" id="code-help">From another device of yours, or from whoever runs this Atrium (<code>npm run -s atrium -- code --user you@example.org</code>).</p>
</form>`;
}

/** Shown after a link was requested: the same for every address. */
export function linkMailedPage(email: string): Page {
  return {
    title: 'Check your mail',
    body: html`<p role="status">If <strong>${email}</strong> may sign in here, a link is on its way. It works once, for 15 minutes.</p>
<p class="quiet">Nothing there? Look among the spam, or <a href="/auth/sign-in">try again</a>.</p>`,
  };
}

/** The page behind a mailed link. Opening it does not sign in yet: the visitor has to press the button. */
export function followLinkPage(token: string, { redirect }: Destination): Page {
  return {
    formMayGoTo: redirect,
    title: 'Sign in',
    body: html`<p>You have asked to sign in by e-mail.</p>
<form method="post" action="/auth/email/${encodeURIComponent(token)}"><button class="button">Sign in</button></form>
<p class="quiet">You have not? Then close this page, and nothing happens.</p>`,
  };
}

/** Shows the code when there is no client to send it to. */
export function codePage({ code }: AuthCode, returnUrl?: string): Page {
  return {
    title: 'You are signed in',
    body: html`<p>Your app asks for this code. It works once, for one minute.</p>
<p class="code" aria-label="One-time code">${code}</p>
<p class="quiet">For a session token from a terminal: <code>POST /auth/exchange-code</code> with <code>{"code": "…"}</code>.</p>
${goOn(returnUrl)}`,
  };
}

/** Shown after signing in by a code when no app was named. */
export function signedInPage(sessionToken: string, returnUrl?: string): Page {
  return {
    title: 'You are signed in',
    body: html`<p>No app was named for this sign-in. Programs can sign in with this session token, which is shown only once:</p>
<p class="code" aria-label="Session token">${sessionToken}</p>
<p class="quiet">Whoever has it is you. It is in the list of your sessions, where you can revoke it.</p>
${goOn(returnUrl)}`,
  };
}

function goOn(returnUrl: string | undefined): Html | undefined {
  return returnUrl === undefined
    ? undefined
    : html`<a class="button" href="${returnUrl}">Go on to ${new URL(returnUrl).host}</a>`;
}

export function invitationPage(token: string, { inviter, spaceName, role, email }: InvitationView): Page {
  return {
    title: 'You are invited',
    body: html`<p>${inviter} invites <strong>${email}</strong> into the space <strong>${spaceName}</strong>, as ${withArticle(role)}.</p>
<form method="post" action="/auth/invitations/${encodeURIComponent(token)}"><button class="button">Join</button></form>`,
  };
}

interface Joined {
  spaceName: string;
  role: string;
  code: AuthCode;
  http: Config['http'];
}

/** Shown after joining when no app takes the code. Says what the new member can do now. */
export function joinedPage({ spaceName, role, code: { code }, http }: Joined, returnUrl?: string): Page {
  return {
    title: 'You have joined',
    body: html`<p>You are a member of <strong>${spaceName}</strong> now, as ${withArticle(role)}.</p>
${goOn(returnUrl)}
<p>An app that asks for a one-time code takes this one. It works once, for one minute:</p>
<p class="code" aria-label="One-time code">${code}</p>
<p>In a terminal, this command gives a session token for the API:</p>
<pre><code>curl ${publicLink({ http }, 'auth/exchange-code')} -H 'Content-Type: application/json' -d '{"code": "${code}"}'</code></pre>
<p class="quiet">Too late? <a href="${publicLink({ http }, 'auth/sign-in')}">Sign in</a> with the address that was invited. <a href="${publicLink({ http }, 'docs')}">The API’s reference</a> says what
programs can do here.</p>`,
  };
}

/** Shown when the link alone is not enough. Signing in proves the address; `/api/invitations` then lists it. */
export function signInToJoinPage(detail: string, to: Destination): Page {
  return {
    title: 'Sign in to join',
    status: 403,
    body: html`<p>${detail}</p>
<a class="button" href="/auth/sign-in${queryOf(to)}">Sign in</a>
<p class="quiet">The invitation waits for you then: your app shows it, or <code>GET /api/invitations</code> lists it and
<code>POST /api/invitations/{invitationId}/accept</code> joins.</p>`,
  };
}

function hiddenFields({ redirect, state, returnUrl }: Destination): Html {
  const field = (name: string, value: string | undefined) =>
    value !== undefined && html`<input type="hidden" name="${name}" value="${value}">\n`;
  return html`${field('redirect', redirect)}${field('state', state)}${field('returnUrl', returnUrl)}`;
}

function queryOf({ redirect, state, returnUrl }: Destination): string {
  const query = new URLSearchParams({
    ...(redirect !== undefined && { redirect }),
    ...(state !== undefined && { state }),
    ...(returnUrl !== undefined && { returnUrl }),
  });
  return query.size === 0 ? '' : `?${query}`;
}

function withArticle(role: string): string {
  return role === 'viewer' ? 'a viewer' : `an ${role}`;
}
