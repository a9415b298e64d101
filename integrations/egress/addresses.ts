import { BlockList, isIP, isIPv4 } from 'node:net';

/**
 * What no request of a user's may reach: everything that the IANA registries for special-purpose addresses (RFC 6890, as of 2026) do not call globally
 * reachable, and the clouds' own services at public addresses.
 */
const refusedIpv4: readonly (readonly [network: string, bits: number, why: string])[] = [
  ['0.0.0.0', 8, 'this network'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'shared by a carrier'],
  ['127.0.0.0', 8, 'loopback'],
  ['168.63.129.16', 32, 'a cloud’s own service'],
  ['169.254.0.0', 16, 'link-local'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'protocol assignments'],
  ['192.0.2.0', 24, 'documentation'],
  ['192.31.196.0', 24, 'special purpose'],
  ['192.52.193.0', 24, 'special purpose'],
  ['192.88.99.0', 24, '6to4 relay'],
  ['192.168.0.0', 16, 'private'],
  ['192.175.48.0', 24, 'special purpose'],
  ['198.18.0.0', 15, 'benchmarking'],
  ['198.51.100.0', 24, 'documentation'],
  ['203.0.113.0', 24, 'documentation'],
  ['224.0.0.0', 4, 'multicast'],
  ['240.0.0.0', 4, 'reserved'],
];

/** Within 2000::/3, the only part of IPv6 that is given out: what of it can stand for another address, or leads nowhere. */
const refusedIpv6: readonly (readonly [network: string, bits: number, why: string])[] = [
  ['2001::', 23, 'protocol assignments'], // Teredo, ORCHID, benchmarking among them
  ['2001:db8::', 32, 'documentation'],
  ['2002::', 16, '6to4'],
  ['2620:4f:8000::', 48, 'special purpose'],
  ['3fff::', 20, 'documentation'],
];

const ipv4 = lists(refusedIpv4, 'ipv4');
const ipv6 = lists(refusedIpv6, 'ipv6');
const globalIpv6 = subnet('2000::', 3, 'ipv6');

/** Why this address, as a resolver or the URL parser gives one, may not be reached; undefined when it may. */
export function refusalOf(address: string): string | undefined {
  if (isIP(address) === 0) return 'not an address';
  if (isIPv4(address)) return ipv4.find(({ list }) => list.check(address, 'ipv4'))?.why;
  // Mapped, compatible and translated forms (::ffff:0:0/96, ::/96, 64:ff9b::/96 …) are all outside of it.
  if (!globalIpv6.check(address, 'ipv6')) return 'not a global IPv6 address';
  return ipv6.find(({ list }) => list.check(address, 'ipv6'))?.why;
}

function lists(ranges: typeof refusedIpv4, family: 'ipv4' | 'ipv6') {
  return ranges.map(([network, bits, why]) => ({ list: subnet(network, bits, family), why }));
}

export function subnet(network: string, bits: number, family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  list.addSubnet(network, bits, family);
  return list;
}
