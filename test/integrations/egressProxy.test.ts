import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { guardedFetch } from '../../integrations/egress/fetch.ts';
import { type EgressDecision, EgressGuard } from '../../integrations/egress/guard.ts';
import { createEgressProxy } from '../../integrations/egress/proxy.ts';
import { startEgressProxy } from '../../integrations/egress/startEgressProxy.ts';

const names: Record<string, string[]> = { 'site.example': ['127.0.0.1'], 'inside.example': ['127.0.0.1'] };
let site: Server;
let inside: Server;
let proxy: Server;
let reached: string[] = [];
let decisions: EgressDecision[] = [];
const owner = {
  purpose: 'test',
  policy: { allow: [], deny: ['denied.example'] },
  record: async (decision: EgressDecision) => void decisions.push(decision),
};

const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** The site redirects to the address in `?to=`. The server `inside` must never be reached. */
beforeAll(async () => {
  site = createServer((req, res) => {
    reached.push(
      `site ${req.method} ${req.url} ${req.headers.host} ${req.headers['proxy-authorization'] ?? ''}`.trim(),
    );
    const to = URL.parse(req.url ?? '', 'http://x')?.searchParams.get('to');
    if (to) return res.writeHead(302, { location: to }).end();
    text(req).then(
      (body) => res.end(`you sent "${body}"`),
      () => res.destroy(),
    );
  });
  inside = createServer((_req, res) => {
    reached.push('inside');
    res.end('secret');
  });
  for (const server of [site, inside]) await once(server.listen(0, '127.0.0.1'), 'listening');
  // The site acts as a public one: the guard allows it, only at its port.
  const guard = guardWith(async (host) => names[host] ?? []);
  proxy = createEgressProxy(guard, (user, password) => (user === 'spc_1' && password === 'word' ? owner : undefined));
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
});
beforeEach(() => {
  reached = [];
  decisions = [];
});
afterAll(() => {
  for (const server of [site, inside, proxy]) {
    server.close();
    server.closeAllConnections();
  }
});

function guardWith(resolve: (host: string) => Promise<string[]>): EgressGuard {
  return new EgressGuard({ allowInternal: [`site.example:${portOf(site)}`], resolve });
}

const siteUrl = (path = '/') => `http://site.example:${portOf(site)}${path}`;
const insideUrl = () => `http://inside.example:${portOf(inside)}/`;

describe('fetch', () => {
  async function get(url: string, guard = guardWith(async (host) => names[host] ?? [])): Promise<string> {
    await using guarded = guardedFetch(guard, owner);
    return (await guarded.fetch(url)).text();
  }

  test('reaches an allowed site, and records the decision', async () => {
    expect(await get(siteUrl())).toBe('you sent ""');
    expect(reached).toEqual([`site GET / site.example:${portOf(site)}`]);
    expect(decisions).toEqual([
      { host: 'site.example', port: portOf(site), purpose: 'test', address: '127.0.0.1', refusal: null },
    ]);
  });

  test('sends the host name that was checked, for any spelling in the URL or the Host header', async () => {
    const port = portOf(site);
    await using guarded = guardedFetch(
      guardWith(async (host) => names[host] ?? []),
      owner,
    );
    for (const init of [{}, { headers: { Host: 'denied.example' } }]) {
      expect(await (await guarded.fetch(`http://SITE.example.:${port}/`, init)).text()).toBe('you sent ""');
    }
    expect(reached).toEqual(Array(2).fill(`site GET / site.example:${port}`));
    for (const host of ['site.example..', 'site..example']) {
      await expect(guarded.fetch(`http://${host}:${port}/`)).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
    }
  });

  test.each(['', 'http://127.0.0.1', 'http://[::ffff:127.0.0.1]', 'http://2130706433', 'http://169.254.169.254'])(
    'refuses a redirect to an internal address: %s',
    async (host) => {
      const to = host === '' ? insideUrl() : `${host}:${portOf(inside)}/`;
      await expect(get(siteUrl(`/?to=${encodeURIComponent(to)}`))).rejects.toMatchObject({ code: 'EGRESS_REFUSED' });
      expect(reached).not.toContain('inside');
      expect(decisions.at(-1)).toMatchObject({ address: null, refusal: expect.stringContaining('internal') });
    },
  );

  test('connects to the address that was checked, without resolving the name again', async () => {
    let looks = 0;
    const rebinding = new EgressGuard({
      allowInternal: [],
      resolve: async () => [looks++ === 0 ? '192.0.66.1' : '127.0.0.1'],
    });
    await using guarded = guardedFetch(rebinding, owner, { connectTimeoutMs: 200 });
    // The checked address does not answer here.
    await expect(guarded.fetch(insideUrl())).rejects.toThrow();
    expect([looks, reached]).toEqual([1, []]);
  });

  test("refuses a host on the space's deny list", async () => {
    await expect(
      get(
        'http://denied.example/',
        guardWith(async () => ['93.184.215.14']),
      ),
    ).rejects.toThrow('denies');
  });
});

describe('the forward proxy', () => {
  const authorization = (user = 'spc_1:word') => `Basic ${Buffer.from(user).toString('base64')}`;

  async function through(path: string, options: { user?: string; body?: string } = {}) {
    const outgoing = request({
      port: portOf(proxy),
      host: '127.0.0.1',
      method: options.body === undefined ? 'GET' : 'POST',
      path,
      headers: { host: 'ignored.example', 'proxy-authorization': authorization(options.user) },
    });
    outgoing.end(options.body);
    const [response] = await once(outgoing, 'response');
    return { status: response.statusCode as number, body: await text(response) };
  }

  /** Opens a tunnel by CONNECT and sends a request through it. Returns the answer to the request or the refusal. */
  async function tunnel(to: string, user?: string): Promise<string> {
    const socket = connect(portOf(proxy), '127.0.0.1');
    socket.write(`CONNECT ${to} HTTP/1.1\r\nhost: ${to}\r\nproxy-authorization: ${authorization(user)}\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    if (!answer.toString().startsWith('HTTP/1.1 200')) {
      socket.destroy();
      return answer.toString();
    }
    socket.write('GET /tunnelled HTTP/1.1\r\nhost: site.example\r\nconnection: close\r\n\r\n');
    return text(socket);
  }

  test('forwards plain HTTP without the credentials for the proxy', async () => {
    expect(await through(siteUrl('/a?b'), { body: 'hello' })).toEqual({ status: 200, body: 'you sent "hello"' });
    expect(reached).toEqual([`site POST /a?b site.example:${portOf(site)}`]);
  });

  test('sends and logs the normalised name of the host', async () => {
    const port = portOf(site);
    for (const host of ['SITE.Example.', 's%69te.example', 'site%2eexample']) {
      expect(await through(`http://${host}:${port}/`)).toMatchObject({ status: 200 });
      expect(reached.at(-1)).toBe(`site GET / site.example:${port}`);
    }
    for (const host of ['denied.example..', 'site.example..', 'site..example']) {
      expect(await through(`http://${host}:${port}/`)).toMatchObject({ status: 403 });
      expect(await tunnel(`${host}:${port}`)).toMatch(/^HTTP\/1.1 40[03]/);
    }
    expect(reached).toHaveLength(3);
    expect(decisions.map(({ host }) => host)).toEqual([
      ...Array(3).fill('site.example'),
      'denied.example..',
      'site.example..',
      'site..example',
    ]);
  });

  test('opens a tunnel', async () => {
    expect(await tunnel(`site.example:${portOf(site)}`)).toContain('you sent ""');
    expect(reached[0]).toContain('/tunnelled');
  });

  test('refuses internal and unknown hosts, for plain requests and tunnels', async () => {
    expect(await through(insideUrl())).toMatchObject({ status: 403, body: expect.stringContaining('internal') });
    for (const host of ['inside.example', '127.0.0.1', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', '2130706433']) {
      expect(await tunnel(`${host}:${portOf(inside)}`)).toMatch(/^HTTP\/1.1 403/);
    }
    expect(await through('http://unknown.example/')).toMatchObject({ status: 502 });
    expect(reached).toEqual([]);
    expect(decisions).toHaveLength(8);
  });

  test('refuses wrong credentials and requests that are not for a proxy', async () => {
    expect(await through(siteUrl(), { user: 'spc_1:wrong' })).toMatchObject({ status: 407 });
    expect(await tunnel(`site.example:${portOf(site)}`, 'nobody')).toMatch(
      /^HTTP\/1.1 407.*\r\nproxy-authenticate: Basic/,
    );
    expect(await through('/not-a-proxy-request')).toMatchObject({ status: 400 });
    expect(await tunnel('site.example')).toMatch(/^HTTP\/1.1 400/);
    expect([reached, decisions]).toEqual([[], []]);
  });
});

describe('a started egress proxy', () => {
  const run = promisify(execFile);

  test('serves programs by their environment, each by the policy of its owner, until the passage is disposed', async () => {
    await using running = await startEgressProxy({ guard: guardWith(async (host) => names[host] ?? []) });
    const passage = running.open(async () => owner);
    const other = running.open(async () => ({ ...owner, policy: { allow: ['elsewhere.example'], deny: [] } }));
    const curl = async (url: string, { environment } = passage) =>
      (await run('curl', ['-s', '-o', '-', '-w', ' %{http_code}', url], { env: environment })).stdout;
    expect(await curl(siteUrl('/by-curl'))).toBe('you sent "" 200');
    expect(await curl(siteUrl(), other)).toMatch(/does not allow it\.\s+403$/);
    expect(await curl(insideUrl())).toMatch(/403$/);
    expect(
      await curl(siteUrl(), { ...passage, environment: { http_proxy: `http://127.0.0.1:${running.port}` } }),
    ).toMatch(/407$/);
    passage[Symbol.dispose]();
    expect(await curl(siteUrl())).toMatch(/407$/);
    expect(reached).toEqual([expect.stringContaining('site GET /by-curl')]);
  });

  test.each(['its work', 'the proxy'])('closes a tunnel together with %s', async (what) => {
    await using running = await startEgressProxy({ guard: guardWith(async (host) => names[host] ?? []) });
    const passage = running.open(async () => owner);
    const { user, password, port } = passage;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const authorization = Buffer.from(`${user}:${password}`).toString('base64');
    const to = `site.example:${portOf(site)}`;
    socket.write(`CONNECT ${to} HTTP/1.1\r\nhost: ${to}\r\nproxy-authorization: Basic ${authorization}\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 200/);
    const closed = once(socket, 'close');
    if (what === 'its work') passage[Symbol.dispose]();
    else await running[Symbol.asyncDispose]();
    await closed;
  });
});
