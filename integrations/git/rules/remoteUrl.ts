import { gitError } from './failures.ts';

export interface RemoteUrl {
  /** The normalised spelling, which is stored, shown and given to git. */
  url: string;
  host: string;
  port: number;
  /** Without the leading slash, as in git's credential protocol. */
  path: string;
}

const maxLength = 2_000;

/**
 * Parses a remote's URL as a user gives it: https only, without user, password, query or fragment, and without characters
 * that another parser could read differently. Throws 422 `GIT_URL_REFUSED`, which never repeats the input: people paste
 * tokens.
 */
export function parseRemoteUrl(given: string): RemoteUrl {
  if (given.length > maxLength) refuse('it is longer than 2,000 characters');
  // URL would remove control characters and spaces, and turn a backslash into a slash.
  if (!/^[\x21-\x7e]+$/.test(given) || /[\\"<>^`{|}]/.test(given))
    refuse('it has characters that must be percent-encoded');
  if (!/^https:\/\/[^/]/i.test(given)) refuse('it must begin with https://');
  const authority = given.slice('https://'.length).split(/[/?#]/, 1)[0] ?? '';
  if (authority.includes('@')) refuse('it holds a user or a token: store that as a credential');
  checkPath(given.slice('https://'.length + authority.length).split(/[?#]/, 1)[0] ?? '');
  const url = URL.parse(given);
  if (url === null || url.protocol !== 'https:' || url.hostname === '') refuse('it is not a URL');
  if (url.username !== '' || url.password !== '') refuse('it holds a user or a token: store that as a credential');
  if (url.search !== '' || url.hash !== '') refuse('it has a query or a fragment');
  const path = url.pathname.replace(/\/+$/, '').slice(1);
  if (path === '') refuse('it names no repository');
  // An encoded newline would end a line of the credential protocol. Git refuses it too, and would quote the URL.
  if (/%(0[0-9a-d]|7f|00)/i.test(path)) refuse('it has an encoded control character');
  const port = Number(url.port || 443);
  return { url: `https://${url.host}/${path}`, host: url.hostname, port, path };
}

/**
 * A path must mean the same however often it is decoded: a server that decodes `/team/..%2fother` before it resolves
 * dots would be shown the credential for `/team`.
 */
function checkPath(path: string): void {
  if (/%(?:2f|5c|25)/i.test(path)) refuse('it has an encoded slash, backslash or percent sign');
  for (const segment of path.split('/')) {
    const text = decoded(segment) ?? refuse('its percent-encoding is not that of text');
    // Some servers drop the part of a segment after a semicolon.
    if (/^\.\.?(?:;|$)/.test(text)) refuse('it has . or .. as a part of its path');
  }
}

/** Undefined if the text is not validly percent-encoded. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function refuse(why: string): never {
  throw gitError('GIT_URL_REFUSED', `This URL cannot be cloned: ${why}.`);
}
