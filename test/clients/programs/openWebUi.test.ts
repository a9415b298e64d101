import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { ChatUser, ThreadBody } from '../../builders/chat.ts';
import { onePixelPng } from '../../builders/files.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../../builders/product.ts';
import type { FakeRequest, FakeScript } from '../../fakes/script.ts';
import { getChromium } from '../../support/chromium.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { start } from '../../support/processes.ts';
import { waitFor } from '../../support/waitFor.ts';

/**
 * Open WebUI in Chromium, at its default settings: only the address and the key of Atrium are set, and that embeddings
 * come from there too, since a test machine cannot load a model from a hub.
 */
const version = '0.12.4';

const run = promisify(execFile);
const opened = new AsyncDisposableStack();
let product: TestProduct;
let user: ChatUser;
let browser: Browser;
let page: Page;
let origin: string;

beforeAll(async () => {
  const program = await install();
  const executablePath = await getChromium();
  const models = join(temporaryFolder(), 'models.yaml');
  const chat = { id: 'fake-1', provider: 'compatible', model: 'fake-1', capabilities: { images: true } };
  const embedding = { id: 'fake-embeds', provider: 'compatible', model: 'fake-embeddings' };
  writeFileSync(models, JSON.stringify({ models: [chat], embeddingModels: [embedding] }));
  product = await buildProduct({ ATRIUM_MODELS_FILE: models }, scriptFor);
  opened.defer(() => product.close());
  user = await product.user();
  const { key } = await product.identity.keys.create(user.id, { name: 'Open WebUI', scopes: ['chat'] });
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  const served = start(program, ['serve', '--host', '127.0.0.1', '--port', String(port)], {
    env: {
      ...process.env,
      DATA_DIR: temporaryFolder(),
      WEBUI_SECRET_KEY: 'for-this-test',
      OPENAI_API_BASE_URL: `${product.url}/v1`,
      OPENAI_API_KEY: key,
      RAG_EMBEDDING_ENGINE: 'openai',
      RAG_OPENAI_API_BASE_URL: `${product.url}/v1`,
      RAG_OPENAI_API_KEY: key,
      RAG_EMBEDDING_MODEL: 'fake-embeds',
      // A test machine may have no way out; without this, its start waits for models from a hub.
      HF_HUB_OFFLINE: '1',
    },
  });
  opened.defer(async () => {
    process.kill(-served.pid, 'SIGKILL');
    await served.exited;
  });
  await waitFor(
    'Open WebUI to serve',
    () =>
      fetch(`${origin}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
    {
      timeoutMs: 300_000,
    },
  );
  browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  opened.defer(() => browser.close());
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
}, 1_800_000);
afterAll(() => opened.disposeAsync());

/** Installs the program once for this machine, and returns its path. */
async function install(): Promise<string> {
  const folder = join(homedir(), '.cache', 'atrium-test-clients', `open-webui-${version}`);
  const program = join(folder, 'bin', 'open-webui');
  if (existsSync(join(folder, 'installed'))) return program;
  const python = ['python3.12', 'python3.11'].find((name) => {
    try {
      execFileSync(name, ['-c', 'import venv, ensurepip'], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  });
  if (python === undefined) throw new Error('Open WebUI needs Python 3.11 or 3.12, with venv.');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await run(python, ['-m', 'venv', folder]);
  const pip = join(folder, 'bin', 'pip');
  await run(pip, ['install', '--quiet', '--no-cache-dir', `open-webui==${version}`], { timeout: 1_500_000 });
  writeFileSync(join(folder, 'installed'), version);
  return program;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

const isTask = (words: string, text: string) => text.startsWith(`### Task:\n${words}`);

/** Answers requests beside the chats, and asks for the script in a message only if that is the last one. */
function scriptFor({ body }: FakeRequest): FakeScript | undefined {
  const last = (body.messages as { content?: unknown }[]).at(-1)?.content;
  if (typeof last !== 'string' || !last.startsWith('### Task:')) return undefined;
  if (isTask('Generate a concise title', last)) return { tokens: ['{"title": "Named by Atrium"}'] };
  if (isTask('Predict', last)) return { tokens: ['{"follow_ups": ["And then, Atrium?"]}'] };
  return { tokens: ['{"tags": [], "queries": []}'] };
}

/** Types into the open chat, and sends it. */
async function say(text: string): Promise<void> {
  await page.locator('#chat-input').click();
  // The editor would join lines that are not separated otherwise.
  await page.keyboard.insertText(text.replace('\n', ' \n'));
  await page.keyboard.press('Enter');
}

async function beginChat(): Promise<void> {
  await page.goto(origin);
  await page.locator('#chat-input').waitFor();
}

const shown = (text: string) => page.getByText(text).last().waitFor();
const answerShown = () => shown('Hello from the fake provider.');
const threads = async () => (await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`)).data;

/** The newest thread of this title. */
async function threadOf(title: string): Promise<string> {
  return waitFor(`the thread ${title}`, async () => (await threads()).find((one) => one.title?.startsWith(title))?.id);
}

/** The request of a chat to the provider whose last message contains this text. Requests beside chats quote them. */
const sentWith = (text: string) =>
  waitFor(`the request ${text}`, () =>
    requestsWith(product.provider, text).find(({ body }) => !JSON.stringify(body).includes('### Chat History:')),
  );

test('A first user signs up and sees the models', async () => {
  await page.goto(origin);
  await page.getByText('Get started').click();
  await page.locator('#name').fill('Ada');
  await page.locator('#email').fill('ada@example.com');
  await page.locator('#password').fill('a long password');
  await page.getByRole('button', { name: 'Create Admin Account' }).click();
  await page.getByRole('button', { name: /Okay, Let.s Go/ }).click();
  await page.getByRole('button', { name: 'Selected model: fake-1' }).waitFor();
});

test('A chat is answered with all tools of Open WebUI offered, and is one thread', async () => {
  await beginChat();
  await say('A first message');
  await answerShown();
  const { body } = await sentWith('A first message');
  const offered = (body.tools as { function: { name: string } }[]).map((tool) => tool.function.name);
  expect(offered).toContain('ask_user');
  expect(offered.length).toBeGreaterThan(20);
  await say('A second message');
  expect(rolesOf(await sentWith('A second message'))).toEqual(['system', 'user', 'assistant', 'user']);
  await threadOf('A first message');
  expect((await threads()).map(({ title }) => title)).toEqual(['A first message']);
});

test('The chat gets the title that the model gave it, and requests beside it are in no list', async () => {
  await shown('Named by Atrium');
  await shown('And then, Atrium?');
  expect((await threads()).map(({ title }) => title)).toEqual(['A first message']);
});

test('An answer is streamed', async () => {
  await beginChat();
  await say(fake({ tokens: 60, intervalMs: 100 }, 'Stream to me'));
  await shown('w3 w4');
  expect(await page.getByText('w59').count()).toBe(0);
  await shown('w58 w59');
});

test('Stop ends the turn and the provider’s answer', async () => {
  await beginChat();
  await say(fake({ tokens: 5_000, intervalMs: 50 }, 'Stop this'));
  await shown('w3 w4');
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  const threadId = await threadOf('Stop this');
  const { data } = await user.get<{ data: { id: string }[] }>(`/api/threads/${threadId}/turns`);
  expect(await user.ended(data[0]?.id ?? '')).toMatchObject({ status: 'stopped' });
  expect((await product.provider.closed(await sentWith('Stop this'))).closedByClient).toBe(true);
  await say('And go on');
  await answerShown();
});

test('A function of Open WebUI is called, and its result answered in the same thread', async () => {
  await beginChat();
  const toolCalls = [{ id: 'call-1', name: 'get_current_timestamp', arguments: '{}' }];
  await say(fake({ toolCalls }, 'What time is it?'));
  await shown('get_current_timestamp');
  await answerShown();
  const request = await sentWith('user_timezone');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool']);
  const messages = await user.messages(await threadOf('What time is it?'));
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant']);
});

test('An edited message is answered in a thread of its own', async () => {
  await beginChat();
  await say('To be edited');
  await answerShown();
  await page.getByText('To be edited').last().hover();
  await page.locator('.edit-user-message-button').last().click();
  await page.locator('textarea[id^="message-edit-"]').fill('Edited by Ada');
  await page.locator('#confirm-edit-message-button').click();
  expect(rolesOf(await sentWith('Edited by Ada'))).toEqual(['system', 'user']);
  await answerShown();
  expect(await threadOf('Edited by Ada')).not.toBe(await threadOf('To be edited'));
});

test('An answer is generated again', async () => {
  const asked = requestsWith(product.provider, 'Edited by Ada').length;
  await page.getByRole('button', { name: 'Regenerate' }).last().click();
  await page.getByText('Try Again').click();
  await page.getByText('2/2').last().waitFor();
  await waitFor('the second answer', () => requestsWith(product.provider, 'Edited by Ada').length > asked);
});

test('A document is embedded by Atrium, and its words reach the model', async () => {
  await beginChat();
  const file = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('The code word is Bellflower.') };
  await page.locator('input[type=file]').first().setInputFiles(file);
  await shown('notes.txt');
  await say('Which word is in the file?');
  const request = await sentWith('Which word is in the file?');
  expect(JSON.stringify(request.body.messages)).toContain('Bellflower');
  // The message begins like a request beside a chat, and is none.
  await answerShown();
  const listed = await waitFor('the thread', async () =>
    (await threads()).find(({ title }) => title?.startsWith('###')),
  );
  expect((await user.messages(listed.id)).map(({ role }) => role)).toEqual(['user', 'assistant']);
});

test('A picture reaches the model', async () => {
  await beginChat();
  const file = { name: 'dot.png', mimeType: 'image/png', buffer: onePixelPng };
  await page.locator('input[type=file]').first().setInputFiles(file);
  await page
    .locator('img[src^="data:"], img[alt*="dot"], [aria-label*="dot.png"], img[src*="/files/"]')
    .first()
    .waitFor();
  await say('What is in this picture?');
  const request = await sentWith('What is in this picture?');
  expect(JSON.stringify(request.body.messages)).toContain('data:image/png;base64,');
});
