import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';

/**
 * Forms must come from our own pages: another site's form must not sign a visitor in or send mail. Browsers send
 * Sec-Fetch-Site. Old browsers and those on plain HTTP send only Origin. A client that sends neither is not a browser.
 * Throws 403 `CROSS_SITE`.
 */
export function assertOwnForm(req: Request, { http }: Pick<Config, 'http'>): void {
  const site = req.get('sec-fetch-site');
  const origin = req.get('origin');
  const isOwnSite = site === undefined || site === 'same-origin' || site === 'none';
  // The public address, and the requested one: an operator may use another name for the server.
  const own = [new URL(http.publicUrl).origin, `${req.protocol}://${req.get('host')}`];
  if (isOwnSite && (origin === undefined || own.includes(origin))) return;
  throw new DomainError('forbidden', 'CROSS_SITE', 'This form was sent from another site.');
}
