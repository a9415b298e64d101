import { normaliseAddress } from './addresses.ts';

/** RFC 1035, and the underscore that service names have. */
const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const maxNameLength = 253;

/**
 * The one spelling of a host: what is compared with lists, resolved, dialled and sent. Names come out in lower case and
 * ASCII (IDNA), without the one dot that may end them; addresses as `normaliseAddress` writes them, of IPv4 the short,
 * octal and hexadecimal forms too. Undefined is what no resolver should be asked for: empty labels (`a..b`, `a..`),
 * zones, signs that no name has.
 */
export function normaliseHost(text: string): string | undefined {
  if (text.includes(':')) return normaliseAddress(/^\[(.*)\]$/s.exec(text)?.[1] ?? text);
  // These would end the host, or vanish, where a URL is read.
  if (/[/\\?#@\s\p{Cc}]/u.test(text)) return undefined;
  const hostname = URL.parse(`http://${text}/`)?.hostname;
  if (hostname === undefined) return undefined;
  const name = hostname.replace(/\.$/, '');
  if (name.length > maxNameLength) return undefined;
  return normaliseAddress(name) ?? (name.split('.').every((part) => label.test(part)) ? name : undefined);
}

/** A host with its port as URLs and the Host header write them. */
export function authorityOf(host: string, port: number, defaultPort: number): string {
  const written = host.includes(':') ? `[${host}]` : host;
  return port === defaultPort ? written : `${written}:${port}`;
}
