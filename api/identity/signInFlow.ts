import type { Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import type { AuthCode } from '../../models/identity/authCodes.ts';
import type { Destination } from '../../models/identity/pendingSignIns.ts';
import { sendPage } from '../frame/pages/page.ts';
import { requireReturnUrl, returnUrlOf } from '../frame/returnUrls.ts';
import { codePage } from './signInPages.ts';

/**
 * Where the code may go: exactly one of the operator's redirects. The port of a loopback redirect does not count,
 * because a program on the person's own machine listens on any free port (RFC 8252, section 7.3). Throws 400
 * `REDIRECT_NOT_ALLOWED`.
 */
export function destinationOf({ redirect, state, returnUrl }: Destination, config: Config): Destination {
  const back = requireReturnUrl(returnUrl, config, 'returnUrl');
  const { signIn } = config;
  if (redirect === undefined) return back === undefined ? {} : { returnUrl: back };
  if (signIn.redirects.some((allowed) => allowed === redirect || isSameLoopback(allowed, redirect))) {
    return state === undefined ? { redirect } : { redirect, state };
  }
  throw new DomainError('invalid', 'REDIRECT_NOT_ALLOWED', 'The operator has not allowed this redirect address.', {
    errors: [{ pointer: 'redirect', detail: 'is not allowed' }],
  });
}

function isSameLoopback(allowed: string, redirect: string): boolean {
  if (!URL.canParse(redirect)) return false;
  const [one, other] = [new URL(allowed), new URL(redirect)];
  if (one.protocol !== 'http:' || !['127.0.0.1', '[::1]'].includes(one.hostname)) return false;
  one.port = other.port;
  return one.href === other.href;
}

/**
 * The return URL of an invitation. If it is one of the operator's redirects, the code goes there too; otherwise the
 * page links to it. Empty when the operator no longer allows the URL.
 */
export function wayBack(returnUrl: string | null, { http, signIn }: Pick<Config, 'http' | 'signIn'>): Destination {
  const url = returnUrlOf(returnUrl, { http });
  if (url === undefined) return {};
  return signIn.redirects.includes(url) ? { redirect: url } : { returnUrl: url };
}

/** Ends a sign-in: sends the code to the client's redirect, or shows it. */
export function finish(res: Response, code: AuthCode, to: Destination): void {
  if (to.redirect === undefined) sendPage(res, codePage(code, to.returnUrl));
  else forward(res, code.code, { ...to, redirect: to.redirect });
}

export function forward(res: Response, code: string, { redirect, state }: Destination & { redirect: string }): void {
  const url = new URL(redirect);
  url.searchParams.set('code', code);
  if (state !== undefined) url.searchParams.set('state', state);
  // After a form, 303 makes a browser continue with GET.
  res.redirect(303, url.href);
}

/** The error for a way to sign in that is not configured. */
export function notSetUp(): DomainError {
  return new DomainError('notFound', 'NOT_FOUND', 'This sign-in method is not set up on this installation.');
}
