import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { ChatUser } from '../../builders/chat.ts';
import { idsOf } from '../../builders/chat.ts';
import { deepPage, slowPage } from '../../builders/hostilePages.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { residentMiB } from '../../support/processes.ts';
import { processorMs, readerProcesses } from '../../support/readerProcesses.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

const article = Array.from(
  { length: 40 },
  (_, n) => `<p>Paragraph ${n} of a story, long enough to be one of it.</p>`,
).join('');
const page = `<!doctype html><html><head><title>A story</title><script>alert(1)</script></head><body>
  <nav><a href="/">Home</a><a href="/about">About us</a></nav><main><article><h1>The story</h1>${article}
  <p>See <a href="https://example.com/more">more</a>.</p></article></main><footer>Imprint</footer></body></html>`;

const gzipBomb = gzipSync(Buffer.alloc(500_000_000, 'x'));

let web: Server;
let product: TestProduct;
let user: ChatUser;
let stalled = 0;

beforeAll(async () => {
  web = createServer((req, res) => {
    const send = (type: string, body: string | Buffer) => res.writeHead(200, { 'content-type': type }).end(body);
    switch (req.url) {
      case '/page':
        return send('text/html; charset=utf-8', page);
      case '/latin':
        return send('text/html', Buffer.from('<meta charset="iso-8859-1"><p>Gr\xfc\xdfe</p>', 'latin1'));
      case '/json':
        return send('application/json', '{"a":1}');
      case '/image':
        return send('image/png', Buffer.alloc(10));
      case '/long':
        return send('text/plain', 'x'.repeat(100_000));
      case '/gone':
        return res.writeHead(410, { 'content-type': 'text/plain' }).end('gone');
      case '/redirect':
        return res.writeHead(302, { location: '/page' }).end();
      case '/inside':
        return res.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data/' }).end();
      case '/deep':
        return send('text/html', deepPage(2_000));
      case '/slow':
        return send('text/html', slowPage);
      case '/bomb':
        res.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' });
        return res.end(gzipBomb);
      case '/stall':
        stalled++;
        req.socket.once('close', () => stalled--);
        return;
      default:
        return req.socket.destroy();
    }
  });
  await once(web.listen(0, '127.0.0.1'), 'listening');
  product = await buildProduct({
    ATRIUM_EGRESS_ALLOW_INTERNAL: `127.0.0.1:${port()}`,
    // A fast machine reads the slow page within the usual limit.
    ATRIUM_DOCUMENT_CPU_SECONDS: '1',
  });
  user = await product.user();
});
afterAll(async () => {
  await product.close();
  web.close();
  web.closeAllConnections();
});

const port = () => (web.address() as AddressInfo).port;
const at = (path: string) => `http://127.0.0.1:${port()}${path}`;

async function fetched(...inputs: object[]): Promise<unknown[]> {
  const content = toolLines(inputs.map((input) => ['web_fetch', input] as const));
  return toolOutputs((await user.ask({ content, modelId: 'demo' })).chunks);
}

test('A page is returned as text, also after a redirect', async () => {
  const [direct, redirected, raw] = await fetched(
    { url: at('/page') },
    { url: at('/redirect') },
    { url: at('/page'), raw: true },
  );
  expect(direct).toMatchObject({
    url: at('/page'),
    status: 200,
    title: expect.stringContaining('story'),
    nextOffset: null,
  });
  const { text } = direct as { text: string };
  expect(text).toContain('Paragraph 39 of a story');
  expect(text).toContain('[more](https://example.com/more)');
  expect(text).not.toMatch(/alert|<p>|Imprint/);
  expect(redirected).toMatchObject({ url: at('/page'), text });
  expect((raw as { text: string }).text).toBe(page);
});

test('Other text types and charsets are decoded, and a long text is returned in parts', async () => {
  const results = await fetched(
    { url: at('/json') },
    { url: at('/latin') },
    { url: at('/long') },
    { url: at('/long'), offset: 99_990 },
    { url: at('/gone') },
  );
  expect(results).toMatchObject([
    { text: '{"a":1}', contentType: 'application/json' },
    { text: 'Grüße' },
    { text: 'x'.repeat(40_000), nextOffset: 40_000 },
    { text: 'x'.repeat(10), nextOffset: null },
    { status: 410, text: 'gone' },
  ]);
});

test('The model is told about content that is not text, silent servers and refused addresses', async () => {
  const results = await fetched(
    { url: at('/image') },
    { url: at('/broken') },
    { url: at('/inside') },
    { url: 'http://127.0.0.1:2/' },
    { url: 'http://localhost/' },
    { url: 'file:///etc/passwd' },
    { url: 'http://user:word@example.com/' },
  );
  expect(results).toEqual([
    expect.stringContaining('is not text (image/png)'),
    expect.stringMatching(/^error: 127.0.0.1:\d+ did not answer/),
    expect.stringContaining(
      '169.254.169.254:80 cannot be reached from here: the address is internal or special (link-local)',
    ),
    expect.stringContaining('internal or special (loopback)'),
    expect.stringMatching(/^error: localhost:80 cannot be reached/),
    'error: The URL must begin with http:// or https://.',
    'error: The URL must not contain a user name or a password.',
  ]);
});

test('A deeply nested page is read, and a page that takes too long is ended while other requests are served', async () => {
  expect(await fetched({ url: at('/deep') })).toMatchObject([{ title: 'Deep', text: 'at the bottom', isCut: false }]);
  const [reader] = readerProcesses(product.process.pid);
  const before = processorMs(reader as number);
  let hasEnded = false;
  const turn = fetched({ url: at('/slow') }).finally(() => {
    hasEnded = true;
  });
  await waitFor('the reading of the page', () => processorMs(reader as number) > before + 100);
  for (let times = 0; times < 10; times++) expect((await fetch(`${product.url}/healthz`)).status).toBe(200);
  expect(hasEnded).toBe(false);
  expect(await turn).toEqual([expect.stringMatching(/^error: Reading this page takes too much time or memory/)]);
  // A second request for the page does not read it again.
  expect(await fetched({ url: at('/slow') })).toEqual([
    expect.stringMatching(/^error: Reading this page takes too much/),
  ]);
  expect(readerProcesses(product.process.pid)).toEqual([]);
  expect(await fetched({ url: at('/slow'), raw: true })).toMatchObject([
    { text: expect.stringMatching(/^<div a0 a1 /) },
  ]);
});

test('Only the part of a gzip bomb that is read is unpacked', async () => {
  const before = residentMiB(product.process.pid);
  expect(await fetched({ url: at('/bomb') })).toMatchObject([{ nextOffset: 40_000, isCut: true }]);
  expect(residentMiB(product.process.pid) - before).toBeLessThan(200);
});

test('Stopping the turn ends the request', async () => {
  const stream = await user.send({ content: toolLines([['web_fetch', { url: at('/stall') }]]), modelId: 'demo' });
  await waitFor('the request', () => stalled > 0);
  await user.fetch(`/chat/turns/${idsOf(stream).turnId}/stop`, { method: 'POST' });
  expect((await collect(stream)).chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  await waitFor('the end of the request', () => stalled === 0);
});

test('The allow and deny lists of a space apply, and its egress log records each request', async () => {
  const path = `/api/spaces/${user.spaceId}/egress`;
  const put = (body: object) => user.fetch(path, { method: 'PUT', body });
  expect(await user.get(path)).toEqual({ allow: [], deny: [], updatedBy: null, updatedAt: null });
  const wrong = await put({ deny: ['example.com', 'http://x'] });
  expect([wrong.status, await wrong.json()]).toMatchObject([
    422,
    { code: 'EGRESS_PATTERN_INVALID', errors: [{ pointer: '/deny/1' }] },
  ]);
  expect((await put({ deny: [`127.0.0.1:${port()}`] })).status).toBe(200);
  expect(await fetched({ url: at('/json') })).toEqual([expect.stringContaining('the space denies it')]);
  expect(await (await put({ allow: ['127.0.0.1'] })).json()).toMatchObject({
    allow: ['127.0.0.1'],
    deny: [],
    updatedBy: user.id,
  });
  expect(await fetched({ url: at('/json') }, { url: 'http://example.com/' })).toMatchObject([
    { text: '{"a":1}' },
    expect.any(String),
  ]);
  const log = await user.get<{ data: object[]; nextCursor: string }>(`${path}/log?limit=2`);
  expect(log.data).toMatchObject([
    { purpose: 'web_fetch', host: 'example.com', port: 80, address: null, refusal: expect.any(String) },
    { host: '127.0.0.1', port: port(), address: '127.0.0.1', refusal: null },
  ]);
  const next = await user.get<{ data: object[] }>(`${path}/log?limit=1&cursor=${log.nextCursor}`);
  expect(next.data).toMatchObject([{ refusal: 'the space denies it' }]);
  const other = await product.user();
  expect((await other.fetch(path)).status).toBe(404);
});
