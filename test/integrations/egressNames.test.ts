import { BlockList } from 'node:net';
import fc from 'fast-check';
import { normaliseAddress, parseNetwork, refusalOf } from '../../integrations/egress/addresses.ts';
import { EgressGuard } from '../../integrations/egress/guard.ts';
import { normaliseHost } from '../../integrations/egress/hostName.ts';
import { parseHostPattern } from '../../integrations/egress/hostPattern.ts';

/** Spellings that a resolver or a URL would read as the same name. */
const spellings = [
  'evil.example',
  'EVIL.Example',
  'evil.example.',
  'ｅｖｉｌ.example',
  'evil。example',
  'evil．example',
  'evil｡example。',
  '%65vil.example',
  'evil%2Eexample',
  'evil%2eexample%2e',
  'ev\u00adil.example',
];

const invalid = [
  'evil.example..',
  'evil.example...',
  'evil..example',
  '.evil.example',
  'evil.example.。',
  'evil.example%2e%2e',
  '',
  '.',
  '..',
  'evil .example',
  'evil.example\t',
  'evil.example\n',
  'evil.example\0',
  'evil.example/',
  'evil.example#x',
  'x@evil.example',
  'x%40evil.example',
  'evil.example:80',
  'evil!.example',
  '-evil.example',
  `${'a'.repeat(64)}.example`,
  `${'a.'.repeat(127)}example`,
  '1.2.3.4.5',
  '256.1.1.1',
  'fe80::1%eth0',
  '[fe80::1%25eth0]',
  '[2606:4700::1%251]',
  '[::1',
  '[1.2.3.4]',
];

test.each(spellings)('%j is read as evil.example', (text) => expect(normaliseHost(text)).toBe('evil.example'));
test.each(invalid)('%j is not a host', (text) => expect(normaliseHost(text)).toBeUndefined());
test.each([
  ['bücher.example', 'xn--bcher-kva.example'],
  ['BÜCHER.example.', 'xn--bcher-kva.example'],
  ['xn--BCHER-kva.example', 'xn--bcher-kva.example'],
  ['_dmarc.example', '_dmarc.example'],
  ['93.184.55118', '93.184.215.78'],
  ['0135.0270.0327.0116', '93.184.215.78'],
  ['0x5db8d74e', '93.184.215.78'],
  ['1572394830', '93.184.215.78'],
  ['93.184.215.78.', '93.184.215.78'],
  ['[::ffff:93.184.215.78]', '93.184.215.78'],
  ['::FFFF:5db8:d74e', '93.184.215.78'],
  ['[2606:4700:0:0::1111]', '2606:4700::1111'],
  ['2606:4700:0000::0000:1111', '2606:4700::1111'],
])('%j is read as %s', (text, host) => expect(normaliseHost(text)).toBe(host));

describe('a deny list', () => {
  const guard = new EgressGuard({ allowInternal: [], resolve: async () => ['93.184.215.14'] });
  const reach = (host: string, deny: string[]) =>
    guard.admit({ host, port: 443 }, { purpose: 'test', policy: { allow: [], deny }, record: async () => undefined });

  test.each([...spellings, ...invalid])('refuses %j', async (host) => {
    await expect(reach(host, ['evil.example'])).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
    if (spellings.includes(host)) {
      await expect(reach('evil.example', [host])).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
      await expect(reach(`sub.${host}`, ['*.EVIL.example.'])).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
    } else expect(parseHostPattern(host === 'evil.example:80' ? 'x:y' : host)).toBeUndefined();
  });

  test('denies an address in each of its forms', async () => {
    for (const host of ['0x5db8d70e', '[::ffff:93.184.215.14]', '93.184.55054', 'any.example']) {
      for (const pattern of ['93.184.215.14', '0x5db8d70e', '::ffff:93.184.215.14', '::ffff:93.184.0.0/112'])
        await expect(reach(host, [pattern])).rejects.toThrow('denies');
    }
    const six = new EgressGuard({ allowInternal: [], resolve: async () => ['2606:4700:0:0:0:0:0:1111'] });
    const owner = {
      purpose: 'test',
      policy: { allow: [], deny: ['2606:4700::1111'] },
      record: async () => undefined,
    };
    await expect(six.admit({ host: 'any.example', port: 443 }, owner)).rejects.toThrow('denies');
  });

  test('lets other hosts through, under the normalised name', async () => {
    expect(await reach('GOOD.Example.', ['evil.example'])).toEqual({
      host: 'good.example',
      port: 443,
      address: '93.184.215.14',
      isException: false,
    });
  });
});

test('a normalised host is stable and valid in a URL', () => {
  const piece = fc.constantFrom(
    'a',
    'Z',
    '0',
    '1',
    '0x',
    '.',
    '..',
    '。',
    '%2e',
    '%',
    '-',
    '_',
    'ü',
    ':',
    '[',
    ']',
    '@',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(piece).map((pieces) => pieces.join('')),
        fc.ipV6(),
        fc.ipV4Extended(),
      ),
      (text) => {
        const host = normaliseHost(text);
        if (host === undefined) return;
        expect(normaliseHost(host)).toBe(host);
        expect(new URL(`http://${host.includes(':') ? `[${host}]` : host}/`).hostname.replace(/[[\]]/g, '')).toBe(host);
      },
    ),
    { numRuns: 2_000 },
  );
});

/** IANA's special-purpose registries, written independently of the library that the code uses. */
const special =
  `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
  240.0.0.0/4 ::/3 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 4000::/2 8000::/1`.split(/\s+/);

describe('internal and special addresses', () => {
  const oracles = { ipv4: new BlockList(), ipv6: new BlockList() };
  const familyOf = (address: string) => (address.includes(':') ? 'ipv6' : 'ipv4');
  for (const range of special) {
    const [base = '', bits] = range.split('/');
    oracles[familyOf(base)].addSubnet(base, Number(bits), familyOf(base));
  }

  test('are exactly those of the IANA registries', () => {
    const four = fc
      .integer({ min: 0, max: 0xffffffff })
      .map((n) => [24, 16, 8, 0].map((by) => (n >>> by) & 255).join('.'));
    // Most of IPv6 is unallocated, so generate addresses in the allocated part too.
    const six = fc
      .tuple(
        fc.constantFrom('2001', '2002', '2620', '3fff', '2606', ''),
        fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 }),
      )
      .map(([first, groups]) =>
        [first || (groups[0] ?? 0).toString(16), ...groups.slice(1).map((n) => n.toString(16))].join(':'),
      );
    fc.assert(
      fc.property(fc.oneof(four, six), (address) => {
        const known = normaliseAddress(address) ?? '';
        expect(refusalOf(address) !== undefined).toBe(oracles[familyOf(known)].check(known, familyOf(known)));
      }),
      { numRuns: 5_000 },
    );
  });

  test.each(special)('include the first address of %s, also in its IPv4-mapped form', (range) => {
    const [base = ''] = range.split('/');
    expect(refusalOf(base)).toEqual(expect.any(String));
    if (!base.includes(':')) expect(refusalOf(`::ffff:${base}`)).toEqual(expect.any(String));
    expect(parseNetwork(range)?.(base)).toBe(true);
  });

  test('include invalid addresses', () => {
    for (const text of ['', 'x', '127.1', '0x7f000001', '1.1.1.1%1', 'fe80::1%1'])
      expect(refusalOf(text)).toBe('not an address');
  });
});
