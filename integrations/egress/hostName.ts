import { normaliseAddress } from './addresses.ts';

/** RFC 1035, plus the underscore of service names. */
const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const maxNameLength = 253;

/**
 * The canonical spelling of a host, which is compared with lists, resolved, dialled and sent. Names are lower-case
 * ASCII (IDNA), without a trailing dot. Addresses are written by `normaliseAddress`, also from IPv4's short, octal and
 * hexadecimal forms. Undefined for invalid hosts: empty labels (`a..b`, `a..`), zones, and characters that no name has.
 */
export function normaliseHost(text: string): string | undefined {
  if (text.includes(':')) return normaliseAddress(/^\[(.*)\]$/s.exec(text)?.[1] ?? text);
  // A URL parser would end the host at these, or drop them.
  if (/[/\\?#@\s\p{Cc}]/u.test(text)) return undefined;
  const hostname = URL.parse(`http://${text}/`)?.hostname;
  if (hostname === undefined) return undefined;
  const name = hostname.replace(/\.$/, '');
  if (name.length > maxNameLength) return undefined;
  return normaliseAddress(name) ?? (name.split('.').every((part) => label.test(part)) ? name : undefined);
}

/** The port of an `http:` or `https:` URL that names none. */
export function defaultPort(protocol: string): number {
  return protocol === 'https:' ? 443 : 80;
}

/** A host with its port, as in URLs and the Host header. */
export function authorityOf(host: string, port: number, usualPort: number): string {
  const written = host.includes(':') ? `[${host}]` : host;
  return port === usualPort ? written : `${written}:${port}`;
}
