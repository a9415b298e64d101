import { refusalOf } from '../../integrations/egress/addresses.ts';
import { EgressGuard } from '../../integrations/egress/guard.ts';
import { normaliseHost } from '../../integrations/egress/hostName.ts';
import { parseAuthority, parseHostPattern } from '../../integrations/egress/hostPattern.ts';

const open = { purpose: 'test', policy: { allow: [], deny: [] }, record: async () => undefined };
const guard = new EgressGuard({ allowInternal: [], resolve: async () => ['93.184.215.14'] });

/** Internal addresses in the many forms that a URL allows. */
test.each([
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '017700000001',
  '127.255.255.254',
  '0.0.0.0',
  '0',
  '0x0',
  '10.0.0.1',
  '10.255.255.255',
  '012.0.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '100.127.255.255',
  '168.63.129.16',
  '169.254.169.254',
  '0xa9fea9fe',
  '2852039166',
  '0251.0376.0251.0376',
  '169.254.170.2',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '3232235521',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::1]',
  '[100::1]',
  '[2001::1]',
  '[2001:0:7f00:1::]',
  '[2001:db8::1]',
  '[2002:7f00:1::]',
  '[2002:a9fe:a9fe::1]',
  '[3fff::1]',
  '[5f00::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '[fec0::1]',
  '[ff02::1]',
  '１２７.0.0.1',
  '127。0。0。1',
  '127.0.0.1.',
])('the internal address %s is refused', async (text) => {
  const host = new URL(`http://${text}/`).hostname;
  expect(refusalOf(normaliseHost(text) ?? '')).toEqual(expect.any(String));
  await expect(guard.admit({ host, port: 80 }, open)).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
});

test.each([
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '2001:4860:4860::8888',
  '2400::1',
])('the public address %s is allowed', (address) => {
  expect(refusalOf(address)).toBeUndefined();
});

test('a name is refused if one of its addresses is internal or it does not resolve', async () => {
  const names: Record<string, string[]> = {
    'good.example': ['93.184.215.14', '2606:4700:4700::1111'],
    'mixed.example': ['93.184.215.14', '10.0.0.1'],
    'metadata.example': ['169.254.169.254'],
  };
  const named = new EgressGuard({
    allowInternal: ['10.2.0.0/16', 'intern.example:8443'],
    resolve: async (host) => names[host] ?? ['10.1.0.1'],
  });
  expect(await named.admit({ host: 'good.example', port: 443 }, open)).toMatchObject({ address: '93.184.215.14' });
  for (const host of ['mixed.example', 'metadata.example', 'intern.example', 'localhost']) {
    await expect(named.admit({ host, port: 443 }, open)).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
  }
  await expect(named.admit({ host: 'good.example', port: 25 }, open)).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
  // Only the operator's exceptions are allowed.
  expect(await named.admit({ host: 'intern.example', port: 8443 }, open)).toMatchObject({ address: '10.1.0.1' });
  expect(await named.admit({ host: '10.2.3.4', port: 80 }, open)).toMatchObject({ address: '10.2.3.4' });
  const unknown = new EgressGuard({ allowInternal: [], resolve: () => Promise.reject(new Error('ENOTFOUND')) });
  await expect(unknown.admit({ host: 'x.example', port: 80 }, open)).rejects.toMatchObject({
    code: 'EGRESS_UNRESOLVED',
  });
});

test('a name whose servers never answer is refused after a timeout', async () => {
  const silent = new EgressGuard({
    allowInternal: [],
    resolve: () => new Promise(() => undefined),
    resolveTimeoutMs: 5,
  });
  await expect(silent.admit({ host: 'silent.example', port: 80 }, open)).rejects.toMatchObject({
    code: 'EGRESS_UNRESOLVED',
  });
});

test('a name is resolved once for each request, so DNS rebinding does not reach an internal address', async () => {
  let asked = 0;
  const rebinding = new EgressGuard({
    allowInternal: [],
    resolve: async () => [asked++ === 0 ? '93.184.215.14' : '127.0.0.1'],
  });
  expect(await rebinding.admit({ host: 'rebind.example', port: 80 }, open)).toMatchObject({ address: '93.184.215.14' });
  expect(asked).toBe(1);
  await expect(rebinding.admit({ host: 'rebind.example', port: 80 }, open)).rejects.toMatchObject({
    code: 'EGRESS_REFUSED',
  });
});

test("a space's lists restrict hosts, the deny list wins, and each decision is recorded", async () => {
  const recorded: unknown[] = [];
  const owner = (allow: string[], deny: string[]) => ({
    purpose: 'test',
    policy: { allow, deny },
    record: async (decision: unknown) => void recorded.push(decision),
  });
  const admit = (host: string, allow: string[], deny: string[]) => guard.admit({ host, port: 443 }, owner(allow, deny));
  await admit('api.example.com', ['*.example.com'], []);
  await expect(admit('example.com', ['*.example.com'], [])).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
  await expect(admit('notexample.com', ['*.example.com'], [])).rejects.toThrow('does not allow');
  await expect(admit('api.example.com', ['*.example.com'], ['api.example.com'])).rejects.toThrow('denies');
  await expect(admit('api.example.com', [], ['93.184.0.0/16'])).rejects.toThrow('denies');
  // An allow list does not permit internal addresses.
  await expect(admit('127.0.0.1', ['127.0.0.1'], [])).rejects.toThrow('internal');
  expect(recorded).toHaveLength(6);
  expect(recorded[0]).toEqual({
    host: 'api.example.com',
    port: 443,
    purpose: 'test',
    address: '93.184.215.14',
    refusal: null,
  });
  expect(recorded[1]).toMatchObject({ address: null, refusal: 'the space does not allow it' });
});

test.each([
  '',
  '*',
  'a b',
  'http://x',
  'x/y',
  '*.*.x',
  'x@y',
  '10.0.0.0/33',
  '*.10.0.0.1',
  'x:99999',
  'a*.example.com',
])('"%s" is not a pattern', (text) => {
  expect(parseHostPattern(text)).toBeUndefined();
});

test('authorities are parsed as in URLs', () => {
  expect(parseAuthority('0x7f.1:80')).toEqual({ host: '127.0.0.1', port: 80 });
  expect(parseAuthority('[::FFFF:127.0.0.1]:443')).toEqual({ host: '127.0.0.1', port: 443 });
  expect(parseAuthority('EXAMPLE.com.:8080')).toEqual({ host: 'example.com', port: 8080 });
  expect(parseAuthority('user@127.0.0.1:80')).toBeUndefined();
});

describe("a name that the space's lists refuse is never resolved", () => {
  let asked: string[];
  const counting = new EgressGuard({
    allowInternal: [],
    resolve: async (host) => {
      asked.push(host);
      return ['93.184.215.14'];
    },
  });
  const reach = (host: string, policy: { allow: string[]; deny: string[] }) =>
    counting.admit({ host, port: 443 }, { ...open, policy });
  beforeEach(() => {
    asked = [];
  });

  test.each([
    ['not on the allow list', { allow: ['good.example'], deny: [] }],
    ['an allow list of networks', { allow: ['93.184.0.0/16', '93.184.215.14'], deny: [] }],
    ['on the deny list', { allow: [], deny: ['*.evil.example'] }],
    ['on both', { allow: ['*.evil.example'], deny: ['*.evil.example'] }],
  ])('the name is %s', async (_, policy) => {
    await expect(reach('data.evil.example', policy)).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
    expect(asked).toEqual([]);
  });

  test('an allowed name is resolved, and the lists are checked for its addresses too', async () => {
    expect(await reach('good.example', { allow: ['good.example'], deny: [] })).toMatchObject({
      address: '93.184.215.14',
    });
    const denied = { allow: ['good.example'], deny: ['93.184.0.0/16'] };
    await expect(reach('good.example', denied)).rejects.toThrow('denies');
    expect(asked).toEqual(['good.example', 'good.example']);
    expect(await reach('93.184.215.14', { allow: ['93.184.0.0/16'], deny: [] })).toBeDefined();
  });
});
