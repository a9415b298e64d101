import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { ComputerEgress } from '../../../integrations/egress/computerEgress.ts';
import { computerEnvironment } from '../../../integrations/egress/computerEnvironment.ts';
import { type EgressDecision, EgressGuard, type EgressPolicy } from '../../../integrations/egress/guard.ts';
import { type NetworkedComputer, networkedComputer } from '../../support/computerNetwork.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { waitFor } from '../../support/waitFor.ts';

let site: Server;
let egress: ComputerEgress;
let computer: NetworkedComputer;
let socketPath: string;
let port: number;
let policy: EgressPolicy;
let decisions: EgressDecision[] = [];
let resolved: string[] = [];
/** Sends its name, and hangs up after the first data of the other side. */
const greeter = createTcpServer((socket) => {
  socket.on('error', () => undefined).once('data', () => socket.end());
  socket.write('SSH-2.0-greeter\r\n');
});
let greeterPort: number;

const listening = async (server: Server | typeof greeter) => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
};

beforeAll(async () => {
  site = createServer((req, res) => {
    text(req).then(
      (body) => res.end(`${req.method} ${req.headers.host} ${req.url} "${body}"`),
      () => res.destroy(),
    );
  });
  port = await listening(site);
  greeterPort = await listening(greeter);
  const guard = new EgressGuard({
    allowInternal: [`site.example:${port}`, `ssh.example:${greeterPort}`],
    async resolve(host) {
      resolved.push(host);
      return host === 'unknown.example' ? [] : ['127.0.0.1'];
    },
  });
  egress = new ComputerEgress({
    guard,
    maxConnections: 64,
    reviewMs: 100,
    headersTimeoutMs: 600,
    ownerOf: async (computerId) =>
      computerId === 'cmp_1'
        ? { purpose: 'computer', policy, record: async (decision) => void decisions.push(decision) }
        : undefined,
  });
  const folder = temporaryFolder();
  socketPath = path.join(folder, 'egress.sock');
  await egress.open({ computerId: 'cmp_1', path: socketPath });
  computer = await networkedComputer(folder, socketPath, [port, greeterPort, 25]);
});
beforeEach(() => {
  policy = { allow: [], deny: ['denied.example'] };
  decisions = [];
  resolved = [];
});
afterAll(async () => {
  await computer[Symbol.asyncDispose]();
  await egress[Symbol.asyncDispose]();
  for (const server of [site, greeter]) server.close();
  site.closeAllConnections();
});

const viaProxy = computerEnvironment();
const url = (host = 'site.example') => `http://${host}:${port}/x`;
const answered = (host = 'site.example') => `GET ${host}:${port} /x ""`;
const nodeFetch = (what: string) =>
  `${process.execPath} -e 'fetch("${what}").then((r) => r.text()).then((t) => process.stdout.write(t))'`;

/** With Python if this machine has it. Nothing else in Atrium needs it. */
const clients: [string, (what: string) => string][] = [
  ['curl', (what) => `curl -sS --max-time 20 ${what}`],
  ['Node’s fetch', nodeFetch],
];
if (spawnSync('python3', ['--version']).status === 0) {
  const program = (what: string) =>
    `import urllib.request,sys; sys.stdout.write(urllib.request.urlopen("${what}").read().decode())`;
  clients.push(['Python', (what) => `python3 -c '${program(what)}'`]);
}

test('the network of the computer starts without faults', () => expect(computer.faults).toEqual([]));

describe.each([
  ['with the proxy’s variables', viaProxy],
  ['with none', {}],
])('%s', (_, env) => {
  test.each(clients)('%s reaches an allowed host by name', async (_name, command) => {
    const ran = await computer.run(command(url()), { ...env, PATH: process.env.PATH ?? '' });
    expect(ran).toMatchObject({ code: 0, stdout: answered() });
    expect(decisions).toEqual([
      { host: 'site.example', port, purpose: 'computer', address: '127.0.0.1', refusal: null },
    ]);
  });

  test("the space's lists apply, and a refused name is not resolved", async () => {
    policy = { allow: ['site.example'], deny: [] };
    const other = await computer.run(`curl -sS --max-time 20 http://data.elsewhere.example:${port}/`, env);
    expect(other.stdout).not.toContain('GET');
    expect(decisions).toMatchObject([{ host: 'data.elsewhere.example', refusal: 'the space does not allow it' }]);
    expect(resolved).toEqual([]);
    expect(await computer.run(`curl -sS ${url()}`, env)).toMatchObject({ stdout: answered() });
  });
});

test('programs that open a socket by name reach the host, also ssh', async () => {
  const bash = `exec 3<>/dev/tcp/ssh.example/${greeterPort}; head -n 1 <&3`;
  expect(await computer.run(bash)).toMatchObject({ stdout: 'SSH-2.0-greeter\r\n' });
  // ssh fails at the key exchange, after both sides have sent their names.
  const { stderr } = await computer.run(
    `ssh -v -F none -o BatchMode=yes -o ConnectTimeout=2 -p ${greeterPort} ssh.example`,
  );
  expect(stderr).toContain('remote software version greeter');
});

test('a refused plain HTTP request to port 80 gets the reason', async () => {
  const { stdout } = await computer.run("curl -sS --max-time 20 -w '%{http_code}' http://denied.example/");
  expect(stdout).toMatch(/denied.example:80 cannot be reached from here: the space denies it\.\s+403$/);
  const { code } = await computer.run('curl -sS --max-time 20 https://denied.example/');
  // The connection is reset before curl begins with TLS (exit code 7) or while it does (35).
  expect([7, 35]).toContain(code);
});

test.each(['127.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', 'localhost.', 'inside.example', '127.0.0.1'])(
  'the proxy refuses %s',
  async (host) => {
    const { stdout } = await computer.run(
      `curl -sS --max-time 20 -p -x http://127.0.0.1:3128 --noproxy '' -w '%{http_connect}' 'http://${host}:${port}/'`,
    );
    expect(stdout).toMatch(/403$/);
    expect(decisions).toMatchObject([{ address: null, refusal: expect.stringContaining('internal') }]);
  },
);

test('mail is refused, and no outside address is reachable without a name', async () => {
  await computer.run('exec 3<>/dev/tcp/mail.example/25; cat <&3');
  expect(decisions).toMatchObject([{ host: 'mail.example', port: 25, refusal: 'this port is not allowed' }]);
  for (const address of ['93.184.215.14', '169.254.169.254', '10.0.0.1']) {
    const { stderr } = await computer.run(`exec 3<>/dev/tcp/${address}/80`);
    expect(stderr).toContain('unreachable');
  }
  // An address in the table's range without a name, and loopback.
  for (const address of ['127.64.0.9', '127.0.0.1'])
    expect((await computer.run(`curl -sS --max-time 20 http://${address}/`)).code).not.toBe(0);
  expect(decisions).toHaveLength(1);
});

test('a name keeps its address, and DNS queries stay inside the computer', async () => {
  const ask = 'getent ahosts stable.example | head -n 1';
  const [first, second] = [await computer.run(ask), await computer.run(ask)];
  expect(first.stdout).toMatch(/^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./);
  expect(second.stdout).toBe(first.stdout);
  expect([decisions, resolved]).toEqual([[], []]);
});

test('a connection is ended and logged when the space denies its host', async () => {
  const held = computer.run(`exec 3<>/dev/tcp/ssh.example/${greeterPort}; cat <&3`);
  await waitFor('the connection', () => decisions.length === 1);
  policy = { allow: [], deny: ['ssh.example'] };
  expect((await held).stdout).toBe('SSH-2.0-greeter\r\n');
  expect(decisions).toMatchObject([{ refusal: null }, { host: 'ssh.example', refusal: 'the space denies it' }]);
});

test('silent, slow and too many connections to the egress socket are closed, and others go on', async () => {
  const idle = Array.from({ length: 40 }, () => connect(socketPath));
  const slow = connect(socketPath);
  const drip = setInterval(() => slow.write('C'), 50);
  const flood = Array.from({ length: 100 }, () => connect(socketPath));
  const all = [...idle, slow, ...flood].map((socket) => {
    socket.on('error', () => undefined).resume();
    return once(socket, 'close');
  });
  await Promise.all(all);
  clearInterval(drip);
  expect(decisions).toEqual([]);
  expect(await computer.run(`curl -sS ${url()}`)).toMatchObject({ stdout: answered() });
});

test('a deleted computer has no way out, and a leftover socket is replaced', async () => {
  const file = path.join(path.dirname(socketPath), 'gone.sock');
  await egress.open({ computerId: 'cmp_gone', path: file });
  const get = async () => {
    const socket = connect(file);
    socket.write(`GET http://site.example:${port}/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    return text(socket);
  };
  expect(await get()).toMatch(/^HTTP\/1.1 403.*This computer is no more/s);
  await using second = new ComputerEgress({
    guard: new EgressGuard({ allowInternal: [`site.example:${port}`], resolve: async () => ['127.0.0.1'] }),
    ownerOf: async () => ({ purpose: 'computer', policy, record: async () => undefined }),
  });
  await second.open({ computerId: 'cmp_gone', path: file });
  await egress.close('cmp_gone');
  expect(await get()).toMatch(/^HTTP\/1.1 200/);
  await second.close('cmp_gone');
  await expect(stat(file)).rejects.toThrow('ENOENT');
});
