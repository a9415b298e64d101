import { DomainError } from '../../base/errors.ts';

const protocols = new Set(['http:', 'https:']);

/**
 * What a tab may be sent to: pages of the web, and an empty one. The browser's own policy refuses the rest wherever a
 * page leads. Throws 422 `URL_REFUSED`.
 */
export function requireWebAddress(url: string): void {
  if (url === 'about:blank' || (URL.canParse(url) && protocols.has(new URL(url).protocol))) return;
  const detail = 'A browser goes to addresses that begin with http:// or https://, and to about:blank.';
  throw new DomainError('unprocessable', 'URL_REFUSED', detail, { errors: [{ pointer: '/url', detail }] });
}
