import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Browser } from '../../../integrations/browsers/browser.ts';
import { createAuthority, HostCertificates } from '../../../integrations/egress/certificates.ts';
import { ComputerEgress } from '../../../integrations/egress/computerEgress.ts';
import { type EgressDecision, EgressGuard } from '../../../integrations/egress/guard.ts';
import type { Destination } from '../../../integrations/egress/hostPattern.ts';
import { SecretGateway } from '../../../integrations/egress/secretGateway.ts';
import { buildBrowserComputer } from '../../builders/browsers.ts';
import { waitFor } from '../../support/waitFor.ts';

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

/** Requests to `secret.example` get a secret, so the gateway opens TLS with a certificate of Atrium's own authority. */
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
    guard: new EgressGuard({
      allowInternal: [`127.0.0.1:${port}`, '127.0.0.1:59999'],
      resolve: async (host) => (host === 'unknown.example' ? [] : ['127.0.0.1']),
    }),
    ownerOf: async () => ({
      purpose: 'computer',
      policy: { allow: ['*.example', '169.254.169.254'], deny: [] },
      record: async (decision) => void decisions.push(decision),
    }),
    takeOver: (computerId, tunnel, owner) => gateway.takeOver(computerId, tunnel, owner),
  });
  built = await buildBrowserComputer({ egress, authorities: [own.certificate] });
  const decisionOn = async (to: Destination) =>
    decisions.findLast(({ host, port }) => host === to.host && port === to.port);
  browser = built.browser({}, { decisionOn });
  await browser.start(AbortSignal.timeout(60_000));
  id = (await browser.tabs())[0]?.id ?? '';
}, 300_000);
afterAll(async () => {
  await built?.[Symbol.asyncDispose]();
  await egress?.[Symbol.asyncDispose]();
  site?.closeAllConnections();
  site?.close();
});

test("the browser trusts Atrium's authority, so requests to a site get the secret", async () => {
  const opened = await browser.navigate(id, { url: `https://secret.example:${port}/` });
  expect(opened).toMatchObject({ title: 'Secure', status: 'complete' });
  // The page's script sends a request to its own server.
  await browser.act(id, { kind: 'click', at: { x: 100, y: 100 } });
  await browser.act(id, { kind: 'wait', until: { url: '#asked' } });
  expect(heard).toEqual(['Bearer the value']);
});

test('the browser trusts no other authority', async () => {
  await expect(browser.navigate(id, { url: `https://other.example:${port}/` })).rejects.toMatchObject({
    code: 'NAVIGATION_FAILED',
    message: expect.stringContaining('net::ERR_CERT_AUTHORITY_INVALID'),
  });
});

describe.each(['http', 'https'])('a page over %s that cannot be opened', (scheme) => {
  test.each([
    ['refused by the lists', 'elsewhere.test', { code: 'EGRESS_REFUSED', detail: /the space does not allow it/ }],
    ['at an internal address', '169.254.169.254', { code: 'EGRESS_REFUSED', detail: /link-local/ }],
    ['at a port of mail', 'mail.example:25', { code: 'NAVIGATION_FAILED', detail: /at this port/ }],
    ['of an unknown name', 'unknown.example', { code: 'EGRESS_UNRESOLVED', detail: /not known/ }],
    ['of a server that does not listen', 'closed.example:59999', { code: 'EGRESS_UNREACHABLE', detail: /not answer/ }],
  ])('because it is %s fails with the reason, and its tab shows the reason', async (_why, host, { code, detail }) => {
    const url = `${scheme}://${host}/`;
    await expect(browser.navigate(id, { url })).rejects.toMatchObject({ code, message: expect.stringMatching(detail) });
    const [tab] = await browser.tabs();
    expect(tab).toMatchObject({ url, failure: { code, detail: expect.stringMatching(detail) } });
    await expect(browser.openTab(url)).rejects.toMatchObject({ code });
    await waitFor('the new tab to be closed', async () => (await browser.tabs()).length === 1);
  });
});

test('the next page clears the failure of a tab', async () => {
  await browser.navigate(id, { url: `${built.site}/second` });
  expect(await browser.tabs()).toMatchObject([{ title: 'Second', failure: null }]);
});

test('the browser reaches servers on its own computer', async () => {
  expect(await browser.navigate(id, { url: `${built.site}/second` })).toMatchObject({ title: 'Second' });
});

test('the proxy gets requests only for the opened pages', () => {
  expect(new Set(decisions.map(({ host }) => host))).toEqual(
    new Set([
      ...['secret.example', 'other.example', 'elsewhere.test'],
      ...['169.254.169.254', 'unknown.example', 'closed.example'],
    ]),
  );
});
