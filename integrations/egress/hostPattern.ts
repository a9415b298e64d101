import { isIP } from 'node:net';
import { parseNetwork } from './addresses.ts';
import { readEndpoint } from './endpoint.ts';
import { defaultPort, normaliseHost } from './hostName.ts';

/** Where a request goes. */
export interface Destination {
  host: string;
  port: number;
}

/** The destination of an http or https URL; undefined for any other text. */
export function destinationOf(text: string): Destination | undefined {
  const url = readEndpoint(text);
  if (url === undefined) return undefined;
  const host = normaliseHost(url.hostname);
  return host === undefined ? undefined : { host, port: Number(url.port || defaultPort(url.protocol)) };
}

/** Whether a destination, with the address it resolved to, matches. Its host is spelled as `normaliseHost` does. */
export type HostPattern = (to: Destination, address?: string) => boolean;

/**
 * Parses `example.com`, `*.example.com` (all its subdomains), an address, or a network such as `10.1.0.0/16`; a host
 * may end in `:port`. Undefined when it is none of these.
 */
export function parseHostPattern(text: string): HostPattern | undefined {
  const network = parseNetwork(text);
  if (network !== undefined) {
    return ({ host }, address) => [host, address].some((each) => each !== undefined && network(each));
  }
  const [, star, rest = ''] = /^(\*\.)?(.*)$/s.exec(text) ?? [];
  const named = parseAuthority(rest);
  if (named === undefined || (star !== undefined && isIP(named.host) !== 0)) return undefined;
  const { host: wanted, port } = named;
  return ({ host, port: asked }, address) => {
    if (port !== undefined && port !== asked) return false;
    if (star !== undefined) return host.endsWith(`.${wanted}`);
    return host === wanted || (isIP(wanted) !== 0 && address === wanted);
  };
}

/** `host`, `host:port` or `[v6]:port`, and an IPv6 address alone. The host is normalised. */
export function parseAuthority(text: string): { host: string; port: number | undefined } | undefined {
  const [, named = text, digits] = isIP(text) === 6 ? [] : (/^(.*?)(?::(\d{1,5}))?$/s.exec(text) ?? []);
  const host = normaliseHost(named);
  const port = digits === undefined ? undefined : Number(digits);
  return host === undefined || (port ?? 0) > 65_535 ? undefined : { host, port };
}
