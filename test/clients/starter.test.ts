import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../builders/product.ts';
import { getChromium } from '../support/chromium.ts';
import { start, type TestProcess } from '../support/processes.ts';

// client/examples/starter as people get it: a folder of its own with its packages, built by Vite, in a real Chromium on
// an origin of its own. With the transport of client/, and with the AI SDK's.

const root = join(import.meta.dirname, '..', '..');
const starter = join(root, 'client', 'examples', 'starter');
const { dependencies, devDependencies } = JSON.parse(readFileSync(join(starter, 'package.json'), 'utf8'));

const folder = mkdtempSync(join(tmpdir(), 'atrium-starter-'));
const opened = new AsyncDisposableStack();
opened.defer(() => rmSync(folder, { recursive: true }));

let product: TestProduct;
let user: ChatUser;
let browser: Browser;
let origin: string;

beforeAll(async () => {
  const executablePath = await getChromium();
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  product = await buildProduct({ ATRIUM_CORS_ORIGINS: origin });
  opened.defer(() => product.close());
  user = await product.user();
  install();
  await run('tsc', ['-p', '.']);
  await run('vite', ['build', '--logLevel', 'warn'], { VITE_ATRIUM_URL: product.url });
  const preview = program('vite', ['preview', '--host', '127.0.0.1', '--port', String(port), '--strictPort']);
  opened.defer(async () => {
    process.kill(-preview.pid, 'SIGKILL');
    await preview.exited;
  });
  await preview.printed(/127\.0\.0\.1/);
  // As root, Chromium refuses to use its own sandbox. It only opens pages of this test.
  browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  opened.defer(() => browser.close());
}, 300_000);
afterAll(() => opened.disposeAsync());

/** In place of `npm install`: links the packages of the checkout, which have the same versions. */
function install(): void {
  cpSync(starter, folder, { recursive: true, filter: (path) => !path.includes('node_modules') });
  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(name === '@atrium/client' ? join(root, 'client') : join(root, 'node_modules', name), link);
  }
}

function program(name: string, args: string[], env: NodeJS.ProcessEnv = {}): TestProcess {
  const { bin } = JSON.parse(readFileSync(join(folder, 'node_modules', packageOf(name), 'package.json'), 'utf8'));
  const script = join(folder, 'node_modules', packageOf(name), typeof bin === 'string' ? bin : bin[name]);
  return start(process.execPath, [script, ...args], {
    cwd: folder,
    env: { ...process.env, NODE_ENV: undefined, ...env },
  });
}

const packageOf = (name: string) => (name === 'tsc' ? 'typescript' : name);

async function run(name: string, args: string[], env?: NodeJS.ProcessEnv): Promise<void> {
  const ran = program(name, args, env);
  const { code } = await ran.exited;
  expect([name, code, code === 0 ? '' : ran.output()]).toEqual([name, 0, '']);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => {
    server.listen(0, '127.0.0.1', listening);
  });
  const { port } = server.address() as { port: number };
  await new Promise((closed) => {
    server.close(closed);
  });
  return port;
}

test('The starter has the versions of packages that the checkout is tested with', () => {
  const { devDependencies: ours } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { '@atrium/client': _, ...packages } = { ...dependencies, ...devDependencies };
  for (const [name, version] of Object.entries(packages)) expect([name, version]).toEqual([name, ours[name]]);
});

describe.each([
  ['our transport', ''],
  ['the default transport', '?transport=default'],
])('with %s', (_name, query) => {
  let page: Page;
  let problems: string[];
  let asked: string[];

  beforeEach(async () => {
    page = await (await browser.newContext()).newPage();
    problems = [];
    asked = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (request.method() !== 'OPTIONS' && request.url().startsWith(product.url))
        asked.push(`${request.method()} ${pathname}`);
    });
    await page.goto(`${origin}/${query}`);
    const { code } = await product.identity.codes.create(user.id);
    await page.getByLabel('One-time code').fill(code);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await isReady();
  });
  afterEach(async () => {
    await page.context().close();
    expect(problems).toEqual([]);
  });

  const isReady = () => page.locator('output', { hasText: /^ready$/ }).waitFor({ timeout: 30_000 });
  const answers = () => page.locator('article.assistant');

  async function send(text: string): Promise<void> {
    await page.getByLabel('Message').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  }

  test('a question is answered, and a page that is loaded again has both', async () => {
    await send('What is left to do?');
    await answers().getByText('Hello from the fake provider.').waitFor();
    await isReady();
    await page.reload();
    await answers().getByText('Hello from the fake provider.').waitFor();
    await isReady();
    expect(await page.locator('article').count()).toBe(2);
  });

  test('a page that is loaded again in the middle of an answer goes on with it', async () => {
    await send(fake({ tokens: 60, intervalMs: 50 }));
    await answers().getByText('5').first().waitFor();
    await page.reload();
    await answers().first().waitFor();
    await isReady();
    const text = (await answers().innerText()).trim();
    expect(text.split(/\s+/)).toHaveLength(60);
  });

  test('a tool of the page answers, and the same answer goes on', async () => {
    asked = [];
    await send(fake({ toolCalls: [{ id: 'c1', name: 'getTimeZone', arguments: '{}' }] }));
    await answers().getByText('Hello from the fake provider.').waitFor();
    await isReady();
    expect(await page.locator('article').count()).toBe(2);
    // Once for the message, and once for the output of the tool.
    expect(asked).toEqual(['POST /chat/stream', 'POST /chat/stream']);
  });

  test('Stop ends the answer on the page, and the next message is answered', async () => {
    await send(fake({ tokens: 100, intervalMs: 50 }));
    await answers().getByText('5').first().waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await isReady();
    if (query === '') {
      const { data } = await user.get<{ data: { id: string }[] }>(`/api/spaces/${user.spaceId}/threads?limit=1`);
      const turns = await user.get<{ data: { id: string }[] }>(`/api/threads/${data[0]?.id}/turns`);
      expect(await user.ended(turns.data[0]?.id ?? '')).toMatchObject({ status: 'stopped' });
    }
    await send('And now?');
    await answers().getByText('Hello from the fake provider.').waitFor({ timeout: 30_000 });
  });
});
