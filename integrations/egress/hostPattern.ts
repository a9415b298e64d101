import { type BlockList, isIP, isIPv6 } from 'node:net';
import { subnet } from './addresses.ts';

/** A host that a request names, as the URL parser writes it: lower case, ASCII, an IPv4 address in dotted decimals, IPv6 without brackets. */
export interface Destination {
  host: string;
  port: number;
}

/** Whether a destination, and the address that it was found at, is meant. */
export type HostPattern = (to: Destination, address?: string) => boolean;

/**
 * Reads `example.com`, `*.example.com` (whatever is below it), an address, or a network such as `10.1.0.0/16`; each may end in `:port`. Undefined when
 * it is none of these.
 */
export function parseHostPattern(text: string): HostPattern | undefined {
  const network = parseNetwork(text);
  if (network !== undefined) {
    return ({ host }, address) => [host, address].some((each) => each !== undefined && contains(network, each));
  }
  const [, star, rest = ''] = /^(\*\.)?(.*)$/.exec(text) ?? [];
  const named = parseAuthority(rest);
  if (named === undefined || rest.includes('*') || (star !== undefined && isIP(named.host) !== 0)) return undefined;
  const { host: wanted, port } = named;
  return ({ host, port: asked }, address) => {
    if (port !== undefined && port !== asked) return false;
    if (star !== undefined) return host.endsWith(`.${wanted}`);
    return host === wanted || (isIP(wanted) !== 0 && address === wanted);
  };
}

/** `host`, `host:port` or `[v6]:port`, by the rules of URLs: so `0x7f.1` is 127.0.0.1. */
export function parseAuthority(text: string): { host: string; port: number | undefined } | undefined {
  const bracketed = isIPv6(text) ? `[${text}]` : text;
  if (/[/\\?#@\s%]/.test(bracketed) || bracketed === '') return undefined;
  // Any scheme with a default port that nobody names, so that each port stands as it is written.
  const url = URL.parse(`http://${bracketed}`);
  if (url === null || url.hostname === '') return undefined;
  const written = /:(\d{1,5})$/.exec(bracketed.replace(/^\[.*\]/, ''));
  return { host: bareHost(url.hostname), port: written === null ? undefined : Number(written[1]) };
}

/** Without the brackets of IPv6, and without the dot that ends a whole name. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

function parseNetwork(text: string): BlockList | undefined {
  const [, network = '', bits = ''] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  const family = isIP(network);
  if (family === 0 || Number(bits) > (family === 4 ? 32 : 128)) return undefined;
  return subnet(network, Number(bits), family === 4 ? 'ipv4' : 'ipv6');
}

function contains(network: BlockList, address: string): boolean {
  const family = isIP(address);
  return family !== 0 && network.check(address, family === 4 ? 'ipv4' : 'ipv6');
}
