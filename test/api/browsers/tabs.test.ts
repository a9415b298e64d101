import {
  type BrowserSession,
  type BrowserTab,
  browsersOf,
  startSite,
  type TestBrowsers,
} from '../../builders/browser.ts';
import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { getBrowserPrograms } from '../../support/browserPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { readPng } from '../../support/png.ts';

const full = inFull('browsers');

let product: TestProduct;
let computer: TestComputer;
let browsers: TestBrowsers;
let site: string;
let session: BrowserSession;
let path: string;

beforeAll(async () => {
  await getBrowserPrograms();
  product = await buildHostingProduct();
  computer = await buildComputer(product);
  browsers = browsersOf(computer);
  site = await startSite(computer);
  session = await browsers.temporary({ url: `${site}/`, resolution: '800x600' });
  path = `/sessions/${session.id}/tabs`;
}, 300_000);
afterAll(() => product?.close());

async function bytes(at: string): Promise<{ type: string | null; body: Buffer }> {
  const response = await browsers.fetch(at);
  if (!response.ok) throw new Error(await response.text());
  return { type: response.headers.get('content-type'), body: Buffer.from(await response.arrayBuffer()) };
}

test('Tabs can be opened, listed, navigated, brought to the front and closed', async () => {
  const [first] = await browsers.tabs(session);
  const second = await browsers.expect<BrowserTab>(201, 'POST', path, { url: `${site}/?second` });
  expect(second).toMatchObject({ url: `${site}/?second`, active: true, status: 'complete' });
  const tabs = await browsers.tabs(session);
  expect(tabs.map(({ url, active }) => [url, active])).toEqual([
    [`${site}/?second`, true],
    [`${site}/`, false],
  ]);
  const patch = (id: string | undefined, body: unknown) =>
    browsers.expect<BrowserTab>(200, 'PATCH', `${path}/${id}`, body);
  expect(await patch(second.id, { url: `${site}/?third` })).toMatchObject({ url: `${site}/?third` });
  expect(await patch(second.id, { action: 'back' })).toMatchObject({ url: `${site}/?second` });
  expect(await patch(second.id, { action: 'forward' })).toMatchObject({ url: `${site}/?third` });
  expect(await patch(second.id, { action: 'reload' })).toMatchObject({ url: `${site}/?third` });
  const nowhere = await browsers.expect<{ code: string }>(409, 'PATCH', `${path}/${second.id}`, { action: 'forward' });
  expect(nowhere.code).toBe('NO_HISTORY');
  expect(await patch(first?.id, { active: true })).toMatchObject({ id: first?.id, active: true });
  await browsers.expect(204, 'DELETE', `${path}/${second.id}`);
  await browsers.expect(404, 'DELETE', `${path}/${second.id}`);
  await browsers.expect(404, 'GET', `${path}/${second.id}/screenshot`);
  expect(await browsers.tabs(session)).toHaveLength(1);
});

test('A tab is shown as a picture, also of the full page, and as PDF', async () => {
  const [tab] = await browsers.tabs(session);
  const at = `${path}/${tab?.id}`;
  const png = await bytes(`${at}/screenshot`);
  expect(png.type).toBe('image/png');
  const picture = readPng(png.body);
  expect([picture.width, picture.height]).toEqual([800, 600]);
  expect(readPng((await bytes(`${at}/screenshot?fullPage=true`)).body).width).toBe(800);
  const pdf = await bytes(`${at}/pdf`);
  expect([pdf.type, pdf.body.subarray(0, 5).toString()]).toEqual(['application/pdf', '%PDF-']);
});

test.each([
  'file:///etc/passwd',
  'chrome://settings',
  'view-source:http://127.0.0.1:8000/',
  'javascript:alert(1)',
  'data:text/html,hello',
  'about:config',
  'devtools://devtools/bundled/inspector.html',
  'example.com',
  'ftp://example.com/',
  ' ',
])('The URL "%s" is refused for a new tab, an open tab and a new session', async (url) => {
  const [tab] = await browsers.tabs(session);
  for (const [method, at] of [
    ['POST', path],
    ['PATCH', `${path}/${tab?.id}`],
    ['POST', '/sessions'],
  ] as const) {
    const problem = await browsers.expect<{ code: string }>(422, method, at, { url });
    expect(problem.code).toBe('URL_REFUSED');
  }
  expect((await browsers.tabs(session)).map((one) => one.url)).toEqual([tab?.url]);
});

test('The browser itself refuses a page that leads to a file', async () => {
  const [tab] = await browsers.tabs(session);
  const response = await browsers.fetch(`${path}/${tab?.id}`, { method: 'PATCH', body: { url: `${site}/to-file` } });
  expect(JSON.stringify(await response.json())).not.toContain('root:');
  const [now] = await browsers.tabs(session);
  expect(now?.url).not.toMatch(/^file:/);
  await browsers.visit(session, `${site}/`);
});

test.each([{}, { url: 'http://a.example/', action: 'back' }, { active: false }, { action: 'leap' }])(
  '400 for the change %j of a tab',
  async (body) => {
    const [tab] = await browsers.tabs(session);
    await browsers.expect(400, 'PATCH', `${path}/${tab?.id}`, body);
  },
);

full.test.each(['http', 'https'])(
  'A session runs although its first page, of %s, is refused on the way out, and says why',
  async (scheme) => {
    const url = `${scheme}://169.254.169.254/`;
    const other = await browsers.temporary({ url });
    const error = { code: 'EGRESS_REFUSED', detail: expect.stringContaining('link-local') };
    expect(other).toMatchObject({ status: 'running', urlError: error });
    expect(await browsers.get(other)).toMatchObject({ urlError: error });
    expect(await browsers.tabs(other)).toMatchObject([{ url, error }]);
    const problem = await browsers.expect<{ code: string }>(422, 'POST', `/sessions/${other.id}/tabs`, { url });
    expect(problem.code).toBe('EGRESS_REFUSED');
    expect(await browsers.visit(other, `${site}/`)).toMatchObject({ error: null });
    await browsers.end(other);
    expect(session.urlError).toBeNull();
  },
);

test('400 for putting a tab to the back: another one is brought to the front instead', async () => {
  const [tab] = await browsers.tabs(session);
  const problem = await browsers.expect<object>(400, 'PATCH', `${path}/${tab?.id}`, { active: false });
  expect(problem).toMatchObject({ errors: [{ pointer: '/active', detail: 'must be true' }] });
});

test('Closing the last tab leaves an empty one', async () => {
  const [tab] = await browsers.tabs(session);
  await browsers.expect(204, 'DELETE', `${path}/${tab?.id}`);
  expect(await browsers.tabs(session)).toMatchObject([{ url: 'about:blank' }]);
});

test('A paused computer lists no tabs, and opening a tab resumes it', async () => {
  await computer.expect(200, 'POST', '/pause');
  const problem = await browsers.expect<{ code: string }>(409, 'GET', path);
  expect(problem.code).toBe('COMPUTER_PAUSED');
  expect(await browsers.get(session)).toMatchObject({ status: 'running', end: null });
  await browsers.expect(201, 'POST', path, { url: `${site}/` });
});
