import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Browser } from '../../../integrations/browsers/browser.ts';
import { createAuthority, HostCertificates } from '../../../integrations/egress/certificates.ts';
import { ComputerEgress } from '../../../integrations/egress/computerEgress.ts';
import { type EgressDecision, EgressGuard } from '../../../integrations/egress/guard.ts';
import { SecretGateway } from '../../../integrations/egress/secretGateway.ts';
import { buildBrowserComputer } from '../../builders/browsers.ts';

const placeholder = 'atrium_secret_0123456789abcdef';
const page = `<link rel="icon" href="data:,"><title>Secure</title><script>
  const headers = { authorization: 'Bearer ${placeholder}' };
  onclick = () => fetch('/api', { headers }).then(() => { location.hash = 'asked'; });
</script>`;
let site: Server;
let port: number;
let egress: ComputerEgress;
let built: Awaited<ReturnType<typeof buildBrowserComputer>>;
let browser: Browser;
let id: string;
const decisions: EgressDecision[] = [];
const heard: string[] = [];

/** `secret.example` gets a secret, for which its connection is opened with a certificate of our own authority. */
beforeAll(async () => {
  const [own, upstream] = [await createAuthority(new Date()), await createAuthority(new Date())];
  const certificates = new HostCertificates(upstream);
  site = createServer(
    { SNICallback: (name, done) => void certificates.contextFor(name).then((context) => done(null, context), done) },
    (req, res) => {
      if (req.url?.startsWith('/api')) heard.push(String(req.headers.authorization));
      res.setHeader('content-type', 'text/html');
      res.end(page);
    },
  );
  await once(site.listen(0, '127.0.0.1'), 'listening');
  port = (site.address() as AddressInfo).port;
  const secret = {
    ...{ name: 'TOKEN', placeholder, hosts: [`secret.example:${port}`], inUrl: false, headers: [] },
    value: async () => 'the value',
  };
  const gateway = new SecretGateway({
    certificates: async () => new HostCertificates(own),
    placeholdersOf: async () => [secret],
    upstreamAuthorities: [upstream.certificate],
  });
  egress = new ComputerEgress({
    guard: new EgressGuard({ allowInternal: [`127.0.0.1:${port}`], resolve: async () => ['127.0.0.1'] }),
    ownerOf: async () => ({
      purpose: 'computer',
      policy: { allow: ['*.example'], deny: [] },
      record: async (decision) => void decisions.push(decision),
    }),
    takeOver: (computerId, tunnel, owner) => gateway.takeOver(computerId, tunnel, owner),
  });
  built = await buildBrowserComputer({ egress, authorities: [own.certificate] });
  browser = built.browser();
  await browser.start(AbortSignal.timeout(60_000));
  id = (await browser.tabs())[0]?.id ?? '';
}, 300_000);
afterAll(async () => {
  await built?.[Symbol.asyncDispose]();
  await egress?.[Symbol.asyncDispose]();
  site?.closeAllConnections();
  site?.close();
});

test('a site whose requests get a secret is opened, with the secret, since our authority is trusted', async () => {
  const opened = await browser.navigate(id, { url: `https://secret.example:${port}/` });
  expect(opened).toMatchObject({ title: 'Secure', status: 'complete' });
  // Its own script asks its own server.
  await browser.act(id, { kind: 'click', at: { x: 100, y: 100 } });
  await browser.act(id, { kind: 'wait', until: { url: '#asked' } });
  expect(heard).toEqual(['Bearer the value']);
});

test('no other authority is', async () => {
  await expect(browser.navigate(id, { url: `https://other.example:${port}/` })).rejects.toMatchObject({
    code: 'NAVIGATION_FAILED',
    message: expect.stringContaining('net::ERR_CERT_AUTHORITY_INVALID'),
  });
});

test('a site that the space’s lists do not allow is not opened', async () => {
  await expect(browser.navigate(id, { url: `https://elsewhere.test:${port}/` })).rejects.toMatchObject({
    code: 'NAVIGATION_FAILED',
    message: expect.stringContaining('net::ERR_TUNNEL_CONNECTION_FAILED'),
  });
});

test('what runs on the computer itself is reached past the proxy', async () => {
  expect(await browser.navigate(id, { url: `${built.site}/second` })).toMatchObject({ title: 'Second' });
});

test('nothing is asked of the proxy but what was opened', () => {
  expect(new Set(decisions.map(({ host }) => host))).toEqual(
    new Set(['secret.example', 'other.example', 'elsewhere.test']),
  );
});
