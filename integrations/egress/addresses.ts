import ipaddr from 'ipaddr.js';

/** Azure's host agent: special to that cloud, although its address is public. */
const cloudServices = new Set(['168.63.129.16']);
/** The only allocated part of IPv6. Addresses outside it stand for other addresses, or lead nowhere. */
const globalIpv6 = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * The canonical spelling of an address; undefined if the text is none. A mapped address (::ffff:127.0.0.1) becomes the
 * IPv4 address that a socket would dial. An address with a zone (fe80::1%eth0) means a network of this machine, so it
 * is refused.
 */
export function normaliseAddress(text: string): string | undefined {
  if (text.includes('%') || !isStrict(text)) return undefined;
  return ipaddr.process(text).toString();
}

/**
 * Why a user's request may not reach this address; undefined when it may. The ranges are IANA's special-purpose
 * registries, as ipaddr.js keeps them.
 */
export function refusalOf(address: string): string | undefined {
  const known = normaliseAddress(address);
  if (known === undefined) return 'not an address';
  if (cloudServices.has(known)) return 'a cloud’s own service';
  const parsed = ipaddr.parse(known);
  if (parsed.kind() === 'ipv6' && !parsed.match(globalIpv6)) return 'not a global IPv6 address';
  const range = parsed.range();
  if (range === 'unicast') return undefined;
  return range.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export type Network = (address: string) => boolean;

/** `10.1.0.0/16` or `2001:db8::/32`, or undefined. */
export function parseNetwork(text: string): Network | undefined {
  const [, base = '', bits = ''] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  if (!isStrict(base)) return undefined;
  let network = ipaddr.parse(base);
  let length = Number(bits);
  if (length > (network.kind() === 'ipv4' ? 32 : 128)) return undefined;
  // Addresses are unmapped before they are compared, so networks of mapped addresses are too.
  if (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() && length >= 96) {
    network = network.toIPv4Address();
    length -= 96;
  }
  return (address) => {
    const known = normaliseAddress(address);
    if (known === undefined) return false;
    const parsed = ipaddr.parse(known);
    return parsed.kind() === network.kind() && parsed.match(network, length);
  };
}

/** The short, octal and hexadecimal forms of IPv4 are not addresses here: only URLs accept those. */
function isStrict(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (text.includes(':') && ipaddr.IPv6.isValid(text));
}
