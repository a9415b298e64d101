import type { Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import type { AuthCode } from '../../models/identity/authCodes.ts';
import type { Destination } from '../../models/identity/pendingSignIns.ts';
import { sendPage } from '../frame/pages/page.ts';
import { requireReturnUrl, returnUrlOf } from '../frame/returnUrls.ts';
import { codePage } from './signInPages.ts';

/**
 * Where the code may go: exactly one of the operator's redirects. A program on the person's own machine listens on
 * whatever port is free, so of a redirect to a loopback address the port does not count (RFC 8252, section 7.3). Throws
 * 400 `REDIRECT_NOT_ALLOWED`.
 */
export function destinationOf({ redirect, state, returnUrl }: Destination, config: Config): Destination {
  const back = requireReturnUrl(returnUrl, config, 'returnUrl');
  const { signIn } = config;
  if (redirect === undefined) return back === undefined ? {} : { returnUrl: back };
  if (signIn.redirects.some((allowed) => allowed === redirect || isSameLoopback(allowed, redirect))) {
    return state === undefined ? { redirect } : { redirect, state };
  }
  throw new DomainError('invalid', 'REDIRECT_NOT_ALLOWED', 'This redirect is not one that the operator has allowed.', {
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
 * The way back that an invitation names: the code goes there too where the operator has allowed that, else the page has a
 * link. None where the operator no longer allows it.
 */
export function wayBack(returnUrl: string | null, { http, signIn }: Pick<Config, 'http' | 'signIn'>): Destination {
  const url = returnUrlOf(returnUrl, { http });
  if (url === undefined) return {};
  return signIn.redirects.includes(url) ? { redirect: url } : { returnUrl: url };
}

/** Ends a sign-in: the code goes to where the client wants it, or is shown. */
export function finish(res: Response, code: AuthCode, to: Destination): void {
  if (to.redirect === undefined) sendPage(res, codePage(code, to.returnUrl));
  else forward(res, code.code, { ...to, redirect: to.redirect });
}

export function forward(res: Response, code: string, { redirect, state }: Destination & { redirect: string }): void {
  const url = new URL(redirect);
  url.searchParams.set('code', code);
  if (state !== undefined) url.searchParams.set('state', state);
  // After a form a browser goes on with GET.
  res.redirect(303, url.href);
}

/** A way to sign in that is not set up. */
export function notSetUp(): DomainError {
  return new DomainError('notFound', 'NOT_FOUND', 'This way to sign in is not set up here.');
}
