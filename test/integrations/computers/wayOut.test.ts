import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import path from 'node:path';
import { rootCertificates } from 'node:tls';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import { createAuthority, HostCertificates } from '../../../integrations/egress/certificates.ts';
import { ComputerEgress } from '../../../integrations/egress/computerEgress.ts';
import { computerEnvironment } from '../../../integrations/egress/computerEnvironment.ts';
import { type EgressDecision, EgressGuard, type EgressPolicy } from '../../../integrations/egress/guard.ts';
import { SecretGateway } from '../../../integrations/egress/secretGateway.ts';
import { writeTrustFiles } from '../../../integrations/egress/trustFiles.ts';
import { buildHost, hostDir, runOn, startComputer } from '../../builders/host.ts';

const placeholder = 'atrium_secret_0123456789';
const tlsHosts = ['api.example', 'elsewhere.example', 'added.example', 'foreign.example'];
const secret = 'the value that stays outside';
let built: Awaited<ReturnType<typeof buildHost>>;
let egress: ComputerEgress;
let servers: (Server | TcpServer)[];
let client: HostClient;
let other: HostClient;
let tlsPort: number;
let heard: string[] = [];
let resolved: string[] = [];
let decisions: (EgressDecision & { computerId: string })[] = [];
let policies: Map<string, EgressPolicy>;
let ids: string[];

/** Maps the usual ports to the ports of the test's servers, since only root may listen on low ports. */
class TestGuard extends EgressGuard {
  readonly ports = new Map<number, number>();
  override async admit(...[asked, owner]: Parameters<EgressGuard['admit']>) {
    const admitted = await super.admit(asked, owner);
    return { ...admitted, port: this.ports.get(admitted.port) ?? admitted.port };
  }
}

beforeAll(async () => {
  const [own, upstream, added, foreign] = await Promise.all([1, 2, 3, 4].map(() => createAuthority(new Date())));
  if (!own || !upstream || !added || !foreign) throw new Error('There are four.');
  const [ownCertificates, siteCertificates] = [new HostCertificates(own), new HostCertificates(upstream)];
  const sites = new Map([
    ['added.example', new HostCertificates(added)],
    ['foreign.example', new HostCertificates(foreign)],
  ]);
  const web = createServer((req, res) => {
    heard.push(`${req.headers.host}${req.url}`);
    res.end('web');
  });
  const tls = createTlsServer(
    {
      SNICallback: (name, done) =>
        void (sites.get(name) ?? siteCertificates).contextFor(name).then((c) => done(null, c), done),
    },
    (req, res) => {
      heard.push(`${req.headers.host} ${req.headers.authorization}`);
      res.end('tls');
    },
  );
  const ssh = createTcpServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.end());
    socket.write('SSH-2.0-greeter\r\n');
  });
  servers = [web, tls, ssh];
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening');
  const [webPort = 0, tls_ = 0, sshPort = 0] = servers.map((server) => (server.address() as AddressInfo).port);
  tlsPort = tls_;
  const guard = new TestGuard({
    allowInternal: ['web.example', 'ssh.example', ...tlsHosts.map((host) => `${host}:${tlsPort}`)],
    async resolve(host) {
      resolved.push(host);
      return ['127.0.0.1'];
    },
  });
  guard.ports.set(80, webPort).set(22, sshPort);
  const gateway = new SecretGateway({
    certificates: async () => ownCertificates,
    placeholdersOf: async (computerId) =>
      computerId === ids[0]
        ? [
            {
              name: 'T',
              placeholder,
              hosts: [`api.example:${tlsPort}`],
              inUrl: false,
              headers: [],
              value: async () => secret,
            },
          ]
        : [],
    upstreamAuthorities: [upstream.certificate],
  });
  policies = new Map();
  egress = new ComputerEgress({
    guard,
    ownerOf: async (computerId) => ({
      purpose: 'computer',
      policy: policies.get(computerId) ?? { allow: [], deny: [] },
      record: async (decision) => void decisions.push({ ...decision, computerId }),
    }),
    takeOver: (computerId, tunnel, owner) => gateway.takeOver(computerId, tunnel, owner),
  });
  const dir = hostDir();
  const pem = [rootCertificates[0], added.certificate, rootCertificates[1]].join('\n');
  const authorities = [own.certificate, upstream.certificate];
  const system = { file: '/etc/ssl/certs/ca-certificates.crt', pem };
  const trust = await writeTrustFiles(path.join(dir, '.trust'), authorities, system);
  expect(trust.besidePublic.map((each) => each.trim())).toEqual(
    [...authorities, added.certificate].map((c) => c.trim()),
  );
  built = await buildHost({ dir, egress, readOnly: () => trust.readOnly });
  const env = { ...computerEnvironment(trust.paths), TOKEN: placeholder };
  const started = [await startComputer(built.host, { env }), await startComputer(built.host, { env })];
  ids = started.map(({ computerId }) => computerId);
  [client, other] = started.map((each) => each.client) as [HostClient, HostClient];
});
beforeEach(() => {
  [heard, resolved, decisions] = [[], [], []];
  policies.clear();
});
afterAll(async () => {
  await built[Symbol.asyncDispose]();
  await egress[Symbol.asyncDispose]();
  for (const server of servers) server.close();
});

const withoutVariables = 'unset $(env | cut -d= -f1 | grep -iE "_proxy$|CERT|CA_|CAINFO|CAFILE");';

test.each(['', withoutVariables])('a computer reaches a web server by name, and is logged [%s]', async (before) => {
  const { stdout, stderr } = await runOn(client, `${before} curl -sS --max-time 20 http://web.example/path`);
  expect([stdout, stderr]).toEqual(['web', '']);
  expect(heard).toEqual([expect.stringMatching(/^web\.example(:\d+)?\/path$/)]);
  expect(decisions).toMatchObject([{ computerId: ids[0], host: 'web.example', port: 80, refusal: null }]);
});

test('ssh reaches a server by name', async () => {
  const { stdout } = await runOn(client, 'exec 3<>/dev/tcp/ssh.example/22; head -n 1 <&3');
  expect(stdout).toBe('SSH-2.0-greeter\r\n');
});

test('a secret is sent only to its host and only from its computer', async () => {
  const curl = (host: string) => `curl -sS --max-time 20 -H "Authorization: Bearer $TOKEN" https://${host}:${tlsPort}/`;
  const ran = await runOn(
    client,
    `${curl('api.example')} && ${curl('elsewhere.example')}; env; cat /proc/self/environ`,
  );
  expect(ran.stderr).toBe('');
  expect(heard).toEqual([
    `api.example:${tlsPort} Bearer ${secret}`,
    `elsewhere.example:${tlsPort} Bearer ${placeholder}`,
  ]);
  expect(ran.stdout).not.toContain(secret);
  await runOn(other, curl('api.example'));
  expect(heard.at(-1)).toBe(`api.example:${tlsPort} Bearer ${placeholder}`);
});

test("programs trust Atrium's authority also without the variables", async () => {
  const url = `https://api.example:${tlsPort}/`;
  const ran = await runOn(client, `${withoutVariables} export https_proxy=http://127.0.0.1:3128; curl -sS ${url}`);
  expect([ran.stdout, ran.stderr]).toEqual(['tls', '']);
});

test.each([
  ['curl', (url: string) => `curl -sS ${url}`],
  // git finds no repository there, which is not an error about the certificate.
  ['git', (url: string) => `git ls-remote ${url} 2>&1 | grep -qi 'certificate' || echo tls`],
  ['Python', (url: string) => `python3 -c 'import urllib.request as r; print(r.urlopen("${url}").read().decode())'`],
  ['Node', (url: string) => `/opt/node -e 'fetch("${url}").then((r) => r.text()).then(console.log)'`],
])("%s trusts an authority that was added to the host's list, and no other", async (_name, command) => {
  const said = async (host: string) => (await runOn(client, command(`https://${host}:${tlsPort}/`))).stdout;
  expect(await said('added.example')).toMatch(/tls\n?$/);
  expect(heard.length).toBeGreaterThan(0);
  expect(await said('foreign.example')).not.toContain('tls');
  for (const request of heard) expect(request).toContain('added.example');
});

test("one space's lists do not apply to another, and a refused name is not resolved", async () => {
  policies.set(ids[0] ?? '', { allow: ['allowed.example'], deny: [] });
  const curl = "curl -s -o /dev/null -w '%{http_code}' --max-time 20 http://web.example/";
  expect((await runOn(client, curl)).stdout).toBe('403');
  expect(resolved).toEqual([]);
  expect((await runOn(other, curl)).stdout).toBe('200');
});

test('a computer has no other way out: no interface, no UDP and no socket of the proxy', async () => {
  const { stdout } = await runOn(
    client,
    `ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route | tail -n +2;
     (exec 3<>/dev/udp/8.8.8.8/53 && echo x >&3) 2>/dev/null && echo udp;
     find / -xdev -type s 2>/dev/null; grep -c . /proc/net/unix >/dev/null; grep -o '/.*sock' /proc/net/unix`,
  );
  expect(stdout.trim()).toBe('lo');
});
