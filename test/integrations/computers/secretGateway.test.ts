import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { WebSocketServer } from 'ws';
import { createAuthority, HostCertificates } from '../../../integrations/egress/certificates.ts';
import { ComputerEgress } from '../../../integrations/egress/computerEgress.ts';
import { computerEnvironment } from '../../../integrations/egress/computerEnvironment.ts';
import { type EgressDecision, EgressGuard } from '../../../integrations/egress/guard.ts';
import type { SecretPlaceholder } from '../../../integrations/egress/placeholders.ts';
import { SecretGateway } from '../../../integrations/egress/secretGateway.ts';
import { type NetworkedComputer, networkedComputer } from '../../support/computerNetwork.ts';
import { temporaryFolder } from '../../support/folders.ts';

const secret = 'sk-live:ä"/+ 0123456789';
const placeholder = 'atrium_secret_0123456789abcdef';
const folder = temporaryFolder();
const socketPath = path.join(folder, 'egress.sock');
const bundle = path.join(folder, 'bundle.pem');
const env = { ...computerEnvironment({ bundle, own: bundle }), PATH: process.env.PATH ?? '', TOKEN: placeholder };

interface Seen {
  host: string | undefined;
  url: string | undefined;
  method: string | undefined;
  headers: IncomingMessage['headers'];
  body: string;
}

let site: Server;
let port: number;
let egress: ComputerEgress;
let computer: NetworkedComputer;
let upstreamCa: string;
let ownCa: string;
let seen: Seen[] = [];
let decisions: EgressDecision[] = [];
let given: SecretPlaceholder[] = [];
let answer: (req: IncomingMessage, res: ServerResponse, seen: Seen) => void;

/** Answers with the request's authorization and body. */
const echo = (_req: IncomingMessage, res: ServerResponse, { headers, body }: Seen) => {
  res.setHeader('x-echo', headers.authorization ?? '');
  // Otherwise Node writes the head together with the body, as UTF-8.
  res.write('', 'latin1');
  res.end(`${Buffer.from(headers.authorization ?? '', 'latin1').toString()} | ${body}`);
};
const hosts = () => [`api.example:${port}`, `*.wild.example:${port}`];
const toApi = (overrides: Partial<SecretPlaceholder> = {}): SecretPlaceholder => ({
  name: 'API_TOKEN',
  placeholder,
  hosts: hosts(),
  inUrl: false,
  headers: [],
  value: async () => secret,
  ...overrides,
});

beforeAll(async () => {
  const [own, upstream] = [await createAuthority(new Date()), await createAuthority(new Date())];
  [ownCa, upstreamCa] = [own.certificate, upstream.certificate];
  const certificates = new HostCertificates(upstream);
  const forged = new HostCertificates(await createAuthority(new Date()));
  site = createTlsServer(
    {
      ALPNProtocols: ['http/1.1'],
      shouldUpgradeCallback: ({ url: asked }) => asked !== '/no-upgrade',
      SNICallback: (name, done) => {
        const by = name === 'forged.wild.example' ? forged : certificates;
        by.contextFor(name === 'other-name.wild.example' ? 'x.example' : name).then(
          (context) => done(null, context),
          done,
        );
      },
    },
    (req, res) => {
      text(req).then(
        (body) => {
          const heard = { host: req.headers.host, url: req.url, method: req.method, headers: req.headers, body };
          seen.push(heard);
          answer(req, res, heard);
        },
        () => res.destroy(),
      );
    },
  );
  const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: true });
  webSockets.on('connection', (socket, req) => {
    seen.push({ host: req.headers.host, url: req.url, method: req.method, headers: req.headers, body: '' });
    socket.on('message', (data) => socket.send(`you said ${String(data)}`));
  });
  site.on('upgrade', (req, socket: Duplex, head) => {
    if (req.url === '/raw') site.emit('raw', socket);
    else webSockets.handleUpgrade(req, socket, head, (opened) => webSockets.emit('connection', opened, req));
  });
  await once(site.listen(0, '127.0.0.1'), 'listening');
  port = (site.address() as AddressInfo).port;
  const gateway = new SecretGateway({
    certificates: async () => new HostCertificates(own),
    placeholdersOf: async () => given,
    upstreamAuthorities: [upstreamCa],
    headTimeoutMs: 3_000,
  });
  egress = new ComputerEgress({
    guard: new EgressGuard({ allowInternal: [`127.0.0.1:${port}`], resolve: async () => ['127.0.0.1'] }),
    ownerOf: async () => ({
      purpose: 'computer',
      policy: { allow: [], deny: [] },
      record: async (decision) => void decisions.push(decision),
    }),
    takeOver: (computerId, tunnel, owner) => gateway.takeOver(computerId, tunnel, owner),
  });
  await writeFile(bundle, `${ownCa}\n${upstreamCa}`);
  await egress.open({ computerId: 'cmp_1', path: socketPath });
  computer = await networkedComputer(folder, socketPath, [port]);
});
beforeEach(() => {
  [seen, decisions, given, answer] = [[], [], [toApi()], echo];
});
afterAll(async () => {
  await computer[Symbol.asyncDispose]();
  await egress[Symbol.asyncDispose]();
  site.close();
  site.closeAllConnections();
});

const url = (host = 'api.example', rest = '/v1') => `https://${host}:${port}${rest}`;
const bearer = '-H "Authorization: Bearer $TOKEN"';
const curl = (args: string) => computer.run(`curl -sS --max-time 20 ${args}`, env);
const heard = (value = secret) => Buffer.from(value).toString('latin1');

test('the gateway replaces the placeholder by the value for its host, and masks the value in the answer', async () => {
  const { stdout, stderr } = await curl(`-i ${bearer} ${url()}`);
  expect(seen[0]?.headers.authorization).toBe(`Bearer ${heard()}`);
  expect(stderr).toBe('');
  expect(stdout).toContain(`Bearer ${'*'.repeat(Buffer.from(secret).length)} |`);
  expect(stdout).not.toContain('sk-live');
  expect(decisions).toEqual([
    { host: 'api.example', port, purpose: 'computer', address: '127.0.0.1', refusal: null },
    { host: 'api.example', port, purpose: 'computer', address: '127.0.0.1', refusal: null, secret: 'API_TOKEN' },
  ]);
});

test('another host gets the placeholder over an end-to-end TLS connection', async () => {
  const { stdout } = await curl(`${bearer} ${url('elsewhere.example')} -w ' %{certs}'`);
  expect(seen[0]?.headers.authorization).toBe(`Bearer ${placeholder}`);
  expect(stdout).toContain(placeholder);
  expect(decisions).toHaveLength(1);
  const issuer = async (host: string) => {
    const { stdout: verbose, stderr } = await curl(`-v -o /dev/null ${url(host)}`);
    return /issuer: (.*)/.exec(verbose + stderr)?.[1];
  };
  const [opened, closed] = [await issuer('api.example'), await issuer('elsewhere.example')];
  expect(opened).toMatch(/Atrium computers/);
  expect(closed).not.toBe(opened);
});

test.each([
  ['a Host header that names another', '-H "Host: elsewhere.example"', 421],
  ['an absolute URL of another', '--request-target https://elsewhere.example/', 400],
])('a request with %s is refused', async (_, args, status) => {
  const { stdout } = await curl(`${bearer} ${args} -o /dev/null -w '%{http_code}' ${url()}`);
  expect([stdout, seen]).toEqual([String(status), []]);
});

test('TLS with another name than that of the CONNECT fails', async () => {
  const socket = connect(socketPath);
  socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(socket, 'data');
  const tls = connectTls({ socket, servername: 'elsewhere.example', ca: [ownCa, upstreamCa] });
  await expect(once(tls, 'secureConnect')).rejects.toThrow();
  expect(seen).toEqual([]);
});

test.each([
  ['is signed by nobody it knows', 'forged.wild.example'],
  ['is another’s', 'other-name.wild.example'],
])('a server whose certificate %s gets nothing', async (_, host) => {
  const { stdout } = await curl(`${bearer} -w '%{http_code}' ${url(host)}`);
  expect(stdout).toMatch(/does not prove who it is \([A-Z_]+\)\.\n502$/);
  expect(seen).toEqual([]);
});

test('the value is put into basic credentials, cookies and keys, but not into metadata headers, URLs or bodies', async () => {
  await curl(`-u "me:$TOKEN" -H "X-Api-Key: $TOKEN" -b "s=$TOKEN" -A "$TOKEN" -e "$TOKEN" \
    -H "x-amz-meta-a: $TOKEN" -H "X-Object-Meta-B: $TOKEN" -d "$TOKEN" '${url('api.example', `/${placeholder}?q=${placeholder}`)}'`);
  const [{ headers, body, url: asked } = {} as Seen] = seen;
  expect(headers).toMatchObject({
    authorization: `Basic ${Buffer.from(`me:${secret}`).toString('base64')}`,
    'x-api-key': heard(),
    cookie: `s=${heard()}`,
    'user-agent': placeholder,
    referer: placeholder,
    'x-amz-meta-a': placeholder,
    'x-object-meta-b': placeholder,
  });
  expect([body, asked]).toEqual([placeholder, `/${placeholder}?q=${placeholder}`]);
});

const credentials = [
  ...['X-Api-Key', 'Api-Key', 'apikey', 'X-Goog-Api-Key', 'Private-Token', 'JOB-TOKEN', 'X-Auth-Token', 'X-Auth-Key'],
  ...['X-Shopify-Access-Token', 'X-Vault-Token', 'X-Amz-Security-Token', 'Ocp-Apim-Subscription-Key', 'X-Figma-Token'],
  ...['DD-API-KEY', 'DD-APPLICATION-KEY', 'X-RapidAPI-Key', 'X-MBX-APIKEY', 'X-Plex-Token', 'X-Secret', 'X-Password'],
  ...['X-Functions-Key', 'X-N8N-API-KEY', 'xi-api-key', 'X-Algolia-API-Key', 'X-TrackerToken', 'X-CSRF-Token'],
  ...['X-AccessToken', 'secretKey', 'X-OAuth', 'X-Auth-ApiKey', 'AccessKeyId', 'XApiKey', 'userAuthToken'],
];
const others = [
  ...['Cache-Control', 'Expires', 'Link', 'X-Amz-Website-Redirect-Location', 'X-Ms-Blob-Content-Type', 'X-Ms-Tags'],
  ...[
    'X-Bz-Info-Note',
    'Dropbox-Api-Arg',
    'X-Title',
    'Idempotency-Key',
    'Surrogate-Key',
    'X-Amz-Meta-Token',
    'Forwarded',
  ],
  ...['X-Amz-Tagging', 'X-Request-Id', 'Traceparent', 'Baggage', 'X-Ms-Meta-Key', 'X-Goog-Meta-Secret', 'Priority'],
  ...['X-Object-Meta-Token', 'Content-Disposition', 'Sec-Token', 'X-Author', 'X-Keywords', 'Lock-Token', 'X-Anything'],
  ...['X-Monkey', 'X-Turkey', 'Hockey', 'X-Betoken', 'X-Whiskey-Id'],
];

test('the value is put into headers with names of credentials, and into others only if the secret names them', async () => {
  const all = [...credentials, ...others];
  const asked = `${all.map((name) => `-H "${name}: $TOKEN"`).join(' ')} ${url()}`;
  await curl(asked);
  const got = () => all.filter((name) => seen.at(-1)?.headers[name.toLowerCase()] === heard());
  expect(got()).toEqual(credentials);
  given = [toApi({ headers: ['x-anything', 'x-title', 'host', 'content-length'] })];
  await curl(asked);
  expect(got()).toEqual([...credentials, 'X-Title', 'X-Anything']);
  expect(seen.at(-1)?.headers.host).toBe(`api.example:${port}`);
});

test('a value that the server kept from another connection is masked too, also if the client accepts compression', async () => {
  let kept = '';
  answer = (req, res) => {
    kept ||= Buffer.from(req.headers.authorization ?? '', 'latin1').toString();
    res.setHeader('x-kept', Buffer.from(kept).toString('latin1'));
    res.write('', 'latin1');
    res.end(`${kept} ${req.headers['accept-encoding']}`);
  };
  await curl(`${bearer} ${url()}`);
  const { stdout } = await curl(`-i -H 'Accept-Encoding: gzip, br' ${url()}`);
  expect(stdout).toContain(`Bearer ${'*'.repeat(Buffer.from(secret).length)} identity`);
  expect(stdout).not.toContain('sk-live');
});

test('the value is put into URLs with percent-encoding if the secret allows that', async () => {
  given = [toApi({ inUrl: true })];
  await curl(`'${url('api.example', `/bot${placeholder}/x?key=${placeholder}&a=b`)}'`);
  const encoded = encodeURIComponent(secret);
  const inPath = encoded.replace('%3A', ':').replace('%2B', '+');
  expect(seen[0]?.url).toBe(`/bot${inPath}/x?key=${encoded}&a=b`);
});

test('a revoked or deleted value, and one that no header can have, is not sent', async () => {
  given = [toApi({ value: async () => undefined })];
  await curl(`${bearer} ${url()}`);
  given = [toApi({ value: async () => 'two\r\nX-Lines: 1' })];
  const { stdout } = await curl(`${bearer} -w '%{http_code}' ${url()}`);
  expect(stdout).toBe('EGRESS_REFUSED: The secret API_TOKEN has characters that no header can have.\n502');
  given = [];
  await curl(`${bearer} ${url()}`);
  expect(seen.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill(`Bearer ${placeholder}`));
});

test('each request of a connection gets the secrets of that moment', async () => {
  const first = `${bearer} ${url()}`;
  answer = (req, res, all) => {
    given = [];
    echo(req, res, all);
  };
  const { stdout } = await curl(`-w '%{num_connects} ' ${first} --next -sS -w '%{num_connects}' ${first}`);
  expect(seen.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${heard()}`, `Bearer ${placeholder}`]);
  expect(stdout).toMatch(/1 .*0$/s);
});

const smuggled = 'POST /smuggled HTTP/1.1\r\nhost: x\r\ncontent-length: 400\r\n\r\n';
const asChunks = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
test.each([
  ['GET', 'transfer-encoding: chunked', asChunks],
  ['DELETE', 'transfer-encoding: chunked; connection: transfer-encoding', asChunks],
  ['GET', `content-length: ${smuggled.length}; connection: keep-alive, content-length`, smuggled],
  ['OPTIONS', `content-length: ${smuggled.length}`, smuggled],
  ['GET', `content-length: ${smuggled.length}; connection: upgrade; upgrade: other`, smuggled],
])('the body of a %s request with "%s" is not read as a request', async (method, headers, body) => {
  const socket = connect(socketPath);
  socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(socket, 'data');
  const tls = connectTls({ socket, servername: 'api.example', ca: [ownCa] });
  await once(tls, 'secureConnect');
  const host = `host: api.example:${port}`;
  const second = `GET /second HTTP/1.1\r\n${host}\r\nauthorization: Bearer ${placeholder}\r\nconnection: close\r\n\r\n`;
  tls.write(`${method} /first HTTP/1.1\r\n${host}\r\n${headers.replaceAll('; ', '\r\n')}\r\n\r\n${body}${second}`);
  // The upgrade ends HTTP on the connection, so later bytes are never read as a request.
  await closeOf(tls);
  for (const { url: path, body: read, headers: sent } of seen) {
    expect(['/first', '/second']).toContain(path);
    expect(read).not.toContain(heard());
    if (path === '/second') expect(sent.authorization).toBe(`Bearer ${heard()}`);
  }
  if (!headers.includes('upgrade')) expect(seen.map((each) => each.url)).toEqual(['/first', '/second']);
});

test('large bodies stream both ways, and a value that is split over two pieces of an answer is masked', async () => {
  const megabytes = 30;
  answer = (_req, res, { body }) => {
    res.write(`${body.length} `);
    res.write(Buffer.from(secret).subarray(0, 9));
    setImmediate(() => res.end(Buffer.concat([Buffer.from(secret).subarray(9), Buffer.alloc(megabytes << 20, 'x')])));
  };
  const { stdout } = await curl(
    `${bearer} -H 'Expect: 100-continue' --data-binary @<(head -c ${megabytes << 20} /dev/zero) -o ${folder}/got ${url()}; \
      head -c 45 ${folder}/got; echo; wc -c < ${folder}/got`,
  );
  const begin = `${megabytes << 20} ${'*'.repeat(Buffer.from(secret).length)}`;
  expect(stdout.split('\n')[0]).toBe(begin.padEnd(45, 'x'));
  expect(Number(stdout.split('\n')[1])).toBe((megabytes << 20) + begin.length);
});

test('a WebSocket gets the value in its URL, and other upgrades are refused', async () => {
  given = [toApi({ inUrl: true })];
  const program = `const s = new WebSocket("wss://api.example:${port}/live?token=" + process.env.TOKEN);
    s.onopen = () => s.send("hello"); s.onmessage = ({data}) => { process.stdout.write(data); s.close(); };
    s.onerror = (e) => { console.error(e); process.exit(1); };`;
  const ran = await computer.run(`${process.execPath} -e '${program}'`, { ...env, NODE_USE_ENV_PROXY: '' });
  expect(ran).toMatchObject({ code: 0, stdout: 'you said hello' });
  expect(seen[0]?.url).toBe(`/live?token=${encodeURIComponent(secret)}`);
  const refused = await curl(`-i --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: other' ${url()}`);
  expect(refused.stdout).toMatch(/\r\nHTTP\/1.1 400 Bad Request\r\n.*Invalid Upgrade header/s);
});

describe('the gateway masks the value', () => {
  const upgrade = `-H 'Connection: Upgrade' -H 'Upgrade: websocket'`;

  test.each([200, 302, 401, 404, 426, 500])('in a %i answer to an upgrade request', async (status) => {
    answer = (req, res, all) => {
      res.statusCode = status;
      // Without this, Node's server would not pass the request to a handler.
      res.setHeader('connection', 'close');
      res.statusMessage = `Hello ${req.headers.authorization ?? ''}`;
      echo(req, res, all);
    };
    const { stdout } = await curl(`-i --http1.1 ${upgrade} ${bearer} ${url('plain.wild.example', '/no-upgrade')}`);
    expect(seen[0]?.headers.authorization).toBe(`Bearer ${heard()}`);
    expect(stdout).toContain(`HTTP/1.1 ${status} `);
    expect(stdout).toContain(`Bearer ${'*'.repeat(Buffer.from(secret).length)} |`);
    expect(stdout).not.toContain('sk-live');
  });

  test('in the bytes after an upgrade, in pieces of any size', async () => {
    const [tls, upstream] = await upgraded();
    const got = text(tls);
    upstream.write(`one ${secret} two`);
    const bytes = Buffer.from(secret);
    for (const byte of bytes) {
      await new Promise((resolve) => upstream.write(Buffer.of(byte), resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    upstream.end(' three');
    const mask = '*'.repeat(bytes.length);
    expect(await got).toBe(`one ${mask} two${mask} three`);
  });

  test('and holds a possible beginning back only for a moment, showing at most two bytes', async () => {
    const [tls, upstream] = await upgraded();
    const said = async () => String((await once(tls, 'data'))[0]);
    upstream.write('a s');
    expect([await said(), await said()]).toEqual(['a ', 's']);
    upstream.write('k-l');
    expect(await said()).toBe('***');
    upstream.end(secret.slice(4));
    expect(await text(tls)).toBe('*'.repeat(Buffer.from(secret).length - 4));
  });

  test('by refusing compression for WebSockets', async () => {
    const program = `const s = new WebSocket("wss://api.example:${port}/live");
      s.onopen = () => { process.stdout.write("[" + s.extensions + "]"); s.close(); };`;
    const { stdout } = await computer.run(`${process.execPath} -e '${program}'`, { ...env, NODE_USE_ENV_PROXY: '' });
    expect(stdout).toBe('[]');
    expect(seen[0]?.headers).not.toHaveProperty('sec-websocket-extensions');
  });

  /** An upgraded connection: the computer's end and the server's end. */
  async function upgraded(): Promise<[TLSSocket, Duplex]> {
    const socket = connect(socketPath);
    socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await once(socket, 'data');
    const tls = connectTls({ socket, servername: 'api.example', ca: [ownCa] });
    await once(tls, 'secureConnect');
    const head = `GET /raw HTTP/1.1\r\nhost: api.example:${port}\r\nauthorization: Bearer ${placeholder}\r\n`;
    const taken = once(site, 'raw');
    tls.write(`${head}connection: Upgrade\r\nupgrade: raw\r\n\r\n`);
    const [upstream] = (await taken) as [Duplex];
    upstream.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: raw\r\n\r\n');
    expect(String((await once(tls, 'data'))[0])).toMatch(/^HTTP\/1.1 101 Switching Protocols\r\n/);
    return [tls, upstream];
  }
});

test('a client that only speaks HTTP/2 is refused during TLS', async () => {
  const socket = connect(socketPath);
  socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(socket, 'data');
  const tls = connectTls({ socket, servername: 'api.example', ca: [ownCa], ALPNProtocols: ['h2'] });
  await expect(once(tls, 'secureConnect')).rejects.toThrow(/no application protocol/i);
});

/** Resolves when the socket is closed, with or without an error. */
const closeOf = (socket: Socket) =>
  new Promise((resolve) =>
    socket
      .on('error', () => undefined)
      .resume()
      .once('close', resolve),
  );

test('a silent connection and one with an unfinished head are closed', async () => {
  const socket = connect(socketPath);
  socket.write(`CONNECT api.example:${port} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(socket, 'data');
  await closeOf(socket);
  const slow = connect(socketPath);
  slow.write(`CONNECT api.example:${port} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(slow, 'data');
  const tls = connectTls({ socket: slow, servername: 'api.example', ca: [ownCa] });
  await once(tls, 'secureConnect');
  tls.write('GET / HTTP/1.1\r\nx-slow: ');
  const drip = setInterval(() => tls.write('a'), 100);
  await closeOf(tls);
  clearInterval(drip);
});

describe('the value is sent for', () => {
  beforeEach(() => mkdir(path.join(folder, 'home'), { recursive: true }));

  test("Node's fetch, with and without the proxy's variable", async () => {
    const program = `fetch("${url()}", { headers: { authorization: "Bearer " + process.env.TOKEN } }).then((r) => r.text()).then(console.log)`;
    for (const variables of [env, { NODE_EXTRA_CA_CERTS: bundle, TOKEN: placeholder }]) {
      const { stdout, stderr } = await computer.run(`${process.execPath} -e '${program}'`, variables);
      expect(stdout + stderr).toContain('Bearer **********');
    }
    expect(seen.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill(`Bearer ${heard()}`));
  });

  test('git, with the token in its URL', async () => {
    const [repository, work] = [path.join(folder, 'served'), path.join(folder, 'work')];
    const git = '-c user.name=a -c user.email=a@b.example';
    const made = await computer.run(
      `git init -q ${work} && cd ${work} && echo hello > file && git add . && git ${git} commit -qm one && git clone -q --bare . ${repository} && cd ${repository} && git update-server-info`,
      env,
    );
    expect(made).toMatchObject({ code: 0 });
    const { createReadStream } = await import('node:fs');
    answer = (req, res) => {
      if (req.headers.authorization !== `Basic ${Buffer.from(`me:${secret}`).toString('base64')}`)
        return void res.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      const file = path.join(repository, URL.parse(req.url ?? '', 'http://x')?.pathname.replace('/repo.git', '') ?? '');
      createReadStream(file)
        .on('error', () => res.writeHead(404).end())
        .pipe(res);
    };
    const ran = await computer.run(
      `git clone -q https://me:$TOKEN@api.example:${port}/repo.git ${folder}/clone && cat ${folder}/clone/file`,
      env,
    );
    expect(ran).toMatchObject({ code: 0, stdout: 'hello\n' });
  });

  test('npm, with the token in its settings', async () => {
    answer = (req, res) => {
      if (req.headers.authorization !== `Bearer ${heard()}`) return void res.writeHead(401).end();
      res.setHeader('content-type', 'application/json');
      return void res.end(
        JSON.stringify({
          name: 'thing',
          'dist-tags': { latest: '1.2.3' },
          versions: { '1.2.3': { name: 'thing', version: '1.2.3', dist: {} } },
        }),
      );
    };
    const registry = `//api.example:${port}/`;
    await writeFile(
      path.join(folder, 'home', '.npmrc'),
      `registry=https:${registry}\n${registry}:_authToken=\${TOKEN}\n`,
    );
    const ran = await computer.run('npm view thing version --no-update-notifier --fetch-retries=0', env);
    expect(ran).toMatchObject({ code: 0, stdout: '1.2.3\n' });
  });
});
