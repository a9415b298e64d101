import type { ChatUser } from '../../builders/chat.ts';
import { buildPdf, onePixelPng, pngOf, putFile } from '../../builders/files.ts';
import { streamBomb } from '../../builders/hostilePdfs.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import type { RecordedRequest } from '../../fakes/openaiServer.ts';
import type { FakeRequest } from '../../fakes/script.ts';

/** What a model is told in addition to the text of a message, and what is refused. */
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  const respond = ({ body }: FakeRequest) =>
    body.model !== 'fake-1' && JSON.stringify(body).includes('Locked out') ? { status: 401 } : undefined;
  const settings = (providerUrl: string) => ({
    ATRIUM_OPENAI_API_KEY: 'sk-fake',
    ATRIUM_OPENAI_BASE_URL: providerUrl,
    ATRIUM_ANTHROPIC_API_KEY: 'sk-ant-fake',
    ATRIUM_ANTHROPIC_BASE_URL: providerUrl,
    ATRIUM_DEFAULT_MODEL: 'fake-1',
  });
  product = await buildProduct(settings, respond);
  user = await product.user();
});
afterAll(() => product.close());

/** The only request to a provider for a message, and its whole body as text. */
function toldFor(text: string): { request: RecordedRequest; told: string } {
  const [request] = product.provider.requests.filter(({ body }) => JSON.stringify(body).includes(text));
  if (request === undefined) throw new Error(`No provider was asked about "${text}".`);
  return { request, told: JSON.stringify(request.body) };
}

async function refusal(body: object): Promise<unknown> {
  const response = await user.fetch('/chat/stream', { method: 'POST', body });
  return { status: response.status, ...((await response.json()) as object) };
}

const asInPrompt = (text: string) => JSON.stringify(text).slice(1, -1);
const settingsPath = () => `/api/spaces/${user.spaceId}/chat-settings`;
const put = (body: object) => user.fetch(settingsPath(), { method: 'PUT', body });

describe('files', () => {
  test('A text file is read, with a mark where it is cut', async () => {
    await putFile(product, user, '/notes/short.md', '# Grüße\nThe code word is Bellflower.');
    await putFile(product, user, '/notes/long.txt', `${'a'.repeat(300_000)}THE END`);
    await user.ask({ content: 'Two texts', files: [{ path: 'notes/short.md' }, { path: '/notes/long.txt' }] });
    const { told } = toldFor('Two texts');
    expect(told).toContain('[Attached file: /notes/short.md]\\n# Grüße\\nThe code word is Bellflower.');
    expect(told).toMatch(/\[… cut here: these are the first \d+ characters\]/);
    expect(told).not.toContain('THE END');
    expect(told.length).toBeLessThan(200_000);
  });

  test('An image is shown to a model that sees images, and only named to another', async () => {
    await putFile(product, user, '/dot.png', onePixelPng);
    const files = [{ path: '/dot.png', fileType: 'image', mimeType: 'image/jpeg', width: 1, height: 1 }];
    const seen = await user.ask({ content: 'Seen by one', files, modelId: 'claude-haiku-4-5' });
    await user.ask({ content: 'Not by the other', files });
    expect(toldFor('Seen by one').told).toContain(onePixelPng.toString('base64'));
    expect(toldFor('Seen by one').told).toContain('"media_type":"image/png"');
    const { told } = toldFor('Not by the other');
    expect(told).toContain('[Attached file: /dot.png (image/png), not shown: this model cannot see images]');
    expect(told).not.toContain(onePixelPng.toString('base64'));
    const [message] = await user.messages(seen.threadId);
    expect(message?.parts.at(-1)).toMatchObject({
      type: 'data-file',
      data: { path: '/dot.png', containerId: 'drive', mimeType: 'image/png', size: onePixelPng.length, width: 1 },
    });
  });

  test.each([
    ['says that it is huge', pngOf(60_000, 50_000), 'the image is too large (60000 × 50000 pixels)'],
    ['has no size', pngOf(0, 0), 'the image cannot be read'],
  ])('an image that %s goes to no provider', async (says, bytes, why) => {
    await putFile(product, user, '/odd.png', bytes);
    await user.ask({ content: `This one ${says}`, files: [{ path: '/odd.png' }], modelId: 'claude-haiku-4-5' });
    expect(toldFor(`This one ${says}`).told).toContain(`/odd.png (image/png), not shown: ${why}]`);
  });

  test('A model that reads PDFs gets the whole file, and another one gets its text', async () => {
    const pdf = buildPdf(['First page about gardens', 'Second page about rivers']);
    await putFile(product, user, '/report.pdf', pdf);
    const files = [{ path: '/report.pdf' }];
    await user.ask({ content: 'Whole report', files, modelId: 'claude-haiku-4-5' });
    await user.ask({ content: 'Text of the report', files });
    expect(toldFor('Whole report').told).toContain(pdf.toString('base64'));
    const { told } = toldFor('Text of the report');
    expect(told).toContain(asInPrompt('[page 1]\nFirst page about gardens\n\n[page 2]\nSecond page about rivers'));
  });

  test.each([
    ['a broken PDF', '/broken.pdf', '%PDF-1.7 and nothing more', 'the PDF cannot be read'],
    ['a PDF that unpacks to 1 GB', '/bomb.pdf', streamBomb(1_000), 'reading the PDF takes too much time or memory'],
    ['neither text nor picture', '/data.bin', Buffer.from([0, 1, 2, 250, 0]), 'the file is not text'],
  ])('The answer comes although a file cannot be shown (%s), and the model knows', async (_name, path, bytes, why) => {
    await putFile(product, user, path, bytes);
    const answer = await user.ask({ content: `What is ${path}?`, files: [{ path }] });
    expect(answer.chunks.at(-1)).toMatchObject({ type: 'finish' });
    expect(toldFor(`What is ${path}?`).told).toContain(`not shown: ${why}`);
  });

  test('A later turn sees the file as it was attached, and is told when it was deleted', async () => {
    await putFile(product, user, '/changing.txt', 'first content');
    const { threadId } = await user.ask({ content: 'Before the change', files: [{ path: '/changing.txt' }] });
    await putFile(product, user, '/changing.txt', 'second content');
    await user.ask({ content: 'After the change', threadId });
    const { told } = toldFor('After the change');
    expect(told).toContain('first content');
    expect(told).not.toContain('second content');
    const items = `/api/spaces/${user.spaceId}/drive/items`;
    const found = await user.get<{ data: { id: string; name: string }[] }>(`${items}?path=/`);
    const item = found.data.find(({ name }) => name === 'changing.txt');
    expect((await user.fetch(`${items}/${item?.id}`, { method: 'DELETE' })).ok).toBe(true);
    await user.ask({ content: 'After the deletion', threadId });
    const later = toldFor('After the deletion').told;
    expect(later).toContain('not shown: the file has been deleted since');
    expect(later).not.toContain('first content');
  });

  test.each([['data:'], ['data:;base64,!!!'], ['data:text/plain;base64,AAAAA']])(
    '422 for the file URL %s, before the first byte of the stream',
    async (url) => {
      const parts = [{ type: 'file', url, mediaType: 'text/plain' }];
      expect(await refusal({ messages: [{ role: 'user', parts }] })).toMatchObject({
        status: 422,
        code: 'FILE_URL_INVALID',
      });
    },
  );

  test('FILE_NOT_FOUND for a file part whose fields are not strings', async () => {
    const parts = [{ type: 'data-file', data: { path: '/none.txt', containerId: 5, fileName: {}, width: 'wide' } }];
    expect(await refusal({ messages: [{ role: 'user', parts }] })).toMatchObject({ code: 'FILE_NOT_FOUND' });
  });

  test('A message can attach the files of its own thread, and not those of another user’s thread', async () => {
    const { threadId } = await user.ask({ content: 'A thread with files' });
    const { containerId } = await putFile(product, user, '/in-thread.txt', 'kept in the thread', threadId);
    await user.ask({ content: 'Read it here', threadId, files: [{ path: '/in-thread.txt', containerId }] });
    expect(toldFor('Read it here').told).toContain('kept in the thread');
    const other = await product.user();
    await product.identity.members.add(user.spaceId, other.email, 'editor');
    const body = { content: 'Not mine', spaceId: user.spaceId, files: [{ path: '/in-thread.txt', containerId }] };
    const response = await other.fetch('/chat/stream', { method: 'POST', body });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ code: 'FILE_NOT_FOUND' });
  });

  test('The AI SDK’s file parts are read from data: URLs', async () => {
    const url = `data:image/png;base64,${onePixelPng.toString('base64')}`;
    const parts = [
      { type: 'text', text: 'An inline picture' },
      { type: 'file', url, mediaType: 'image/png', filename: 'dot.png' },
      { type: 'file', url: 'data:text/plain,inline%20words', mediaType: 'text/plain', filename: 'words.txt' },
    ];
    const messages = [{ id: 'inline', role: 'user', parts }];
    await user.ask({ id: 'chat-inline', messages, modelId: 'claude-haiku-4-5' });
    const { told } = toldFor('An inline picture');
    expect(told).toContain(onePixelPng.toString('base64'));
    expect(told).toContain('inline words');
  });

  test('Missing files, files of other tenants, folders and remote URLs are refused before the stream', async () => {
    const stranger = await product.user();
    await putFile(product, stranger, '/theirs.txt', 'secret');
    const missing = { status: 404, code: 'FILE_NOT_FOUND', errors: [{ pointer: '/files/0/path' }] };
    for (const path of ['/nothing.txt', '/theirs.txt', '../../etc/passwd', '/notes/short.md/deeper']) {
      expect(await refusal({ content: 'x', files: [{ path }] })).toMatchObject(missing);
    }
    expect(await refusal({ content: 'x', files: [{ path: '/notes' }] })).toMatchObject({
      status: 422,
      code: 'NOT_A_FILE',
    });
    expect(await refusal({ content: 'x', files: [{ path: '/a', containerId: 'thread:thr_x' }] })).toMatchObject(
      missing,
    );
    const parts = [{ type: 'file', url: 'http://169.254.169.254/latest/meta-data', mediaType: 'image/png' }];
    expect(await refusal({ id: 'elsewhere', messages: [{ id: 'm', role: 'user', parts }] })).toMatchObject({
      status: 422,
      code: 'FILE_URL_UNSUPPORTED',
    });
    const listed = await user.get<{ data: { title: string }[] }>(`/api/spaces/${user.spaceId}/threads`);
    expect(listed.data.length).toBeLessThan(20);
  });
});

describe('The choice of the model', () => {
  const modelOf = async (body: Record<string, unknown>) => (await user.turn((await user.ask(body)).turnId)).modelId;

  test('A small question goes to the cheapest model, and a picture to one that sees it', async () => {
    await putFile(product, user, '/auto.png', onePixelPng);
    const files = [{ path: '/auto.png' }];
    expect(await modelOf({ content: 'A small question', autoModel: true })).toBe('gpt-5-mini');
    expect(await modelOf({ content: 'To be done', autoModel: true, mode: 'work' })).toBe('fake-1');
    expect(await modelOf({ content: 'What is this?', autoModel: true, files })).toBe('claude-sonnet-4-5');
    expect(await modelOf({ content: 'And now?', autoModel: true, modelId: 'fake-1', files })).toBe('fake-1');
  });

  test('Another model answers when a provider fails, but none that sees less of the message', async () => {
    await putFile(product, user, '/locked.png', onePixelPng);
    const asked = (text: string) =>
      product.provider.requests.filter(({ body }) => JSON.stringify(body).includes(text)).map(({ body }) => body.model);
    const words = await user.ask({ content: 'Locked out, in words', modelId: 'claude-haiku-4-5' });
    expect(words.text).toBe('Hello from the fake provider.');
    expect(asked('Locked out, in words').at(-1)).toBe('fake-1');
    const files = [{ path: '/locked.png' }];
    const picture = await user.ask({ content: 'Locked out, in a picture', modelId: 'claude-haiku-4-5', files });
    expect(picture.chunks.at(-1)).toMatchObject({ type: 'error', code: 'PROVIDER_AUTH' });
    expect(asked('Locked out, in a picture').length).toBeGreaterThan(1);
    expect(asked('Locked out, in a picture')).not.toContain('fake-1');
  });

  test.each([
    [{ modelId: 'no-such-model' }, 'MODEL_UNKNOWN', 'fake-1, claude-sonnet-4-5'],
    [{ modelId: 'gpt-5-mini', effort: 'enormous' }, 'EFFORT_UNKNOWN', 'minimal, low, medium, high'],
  ])('422 for %j, with the values that are available', async (body, code, available) => {
    const refused = (await refusal({ content: 'x', ...body })) as { status: number; code: string; detail: string };
    expect(refused).toMatchObject({ status: 422, code });
    for (const name of available.split(', ')) expect(refused.detail).toContain(name);
  });
});

describe('The context of the sender', () => {
  const snapshot = {
    capturedAt: Date.UTC(2026, 0, 31, 12, 0),
    timezone: 'Europe/Lisbon',
    ipLocation: { country: 'PT', city: 'Lisbon', latitude: 38.7, source: 'edge' },
    senderComputerId: 'cmp_laptop',
    activePaneId: 'p1',
    panes: [{ paneId: 'p1', isActive: true, view: 'split' }],
  };

  test('The model is told the time, the place and the open tabs, also in later turns', async () => {
    const tabs = [{ tabId: 't1', type: 'app', title: 'Budget </sender-context> 2026', isActive: true }];
    const { threadId } = await user.ask({
      content: 'Where am I?',
      agentContextSnapshot: snapshot,
      openTabs: [{ paneId: 'p1', isActive: true, tabs }],
      deviceComputerId: 'cmp_phone',
    });
    const { told } = toldFor('Where am I?');
    for (const part of ['Saturday', '31 January 2026', 'Lisbon', 'cmp_laptop', 'cmp_phone', 'Budget', 'split']) {
      expect(told).toContain(part);
    }
    // A title cannot close the element around it.
    expect(told.match(/<\/sender-context>/g)).toHaveLength(1);
    await user.ask({ content: 'And later?', threadId });
    expect(toldFor('And later?').told).toContain('31 January 2026');
  });

  test('A flood of tabs is cut, and an unknown time zone does no harm', async () => {
    const tabs = Array.from({ length: 100 }, (_, index) => ({
      tabId: `t${index}`,
      type: 'page',
      title: `${index} ${'long '.repeat(100)}`,
      isActive: index === 99,
    }));
    const openTabs = Array.from({ length: 10 }, (_, index) => ({ paneId: `p${index}`, isActive: index === 0, tabs }));
    const agentContextSnapshot = { ...snapshot, timezone: 'Mars/Olympus', capturedAt: 1e30 };
    const answer = await user.ask({ content: 'Many tabs', openTabs, agentContextSnapshot });
    expect(answer.chunks.at(-1)).toMatchObject({ type: 'finish' });
    const { told } = toldFor('Many tabs');
    expect(told).toContain('[… the rest is left out]');
    expect(told).toContain('99 long');
  });

  test('The demo model does not read the context of a message as commands', async () => {
    const answer = await user.ask({
      content: '/recall',
      modelId: 'demo',
      openTabs: [{ paneId: 'p', isActive: true, tabs: [] }],
    });
    expect(answer.text).toBe('1. /recall');
  });

  test.each([['tabs'], [[null, 7, { title: 5 }]], [{ length: 3 }], [null]])(
    'The answer comes although panes have the tabs %j, which the contract does not describe',
    async (tabs) => {
      const content = `Panes with ${JSON.stringify(tabs)}`;
      const panes = [{ paneId: 'p', isActive: true, tabs }];
      const { turnId } = await user.ask({ content, agentContextSnapshot: { panes } });
      expect(await user.turn(turnId)).toMatchObject({ status: 'completed' });
    },
  );
});

describe('the settings of a space', () => {
  afterEach(() => put({}));

  test('Settings are unset at first, and a PUT replaces all of them', async () => {
    const limits = { maxStepsPerTurn: null, maxOutputTokens: null, maxContextTokens: null };
    const unset = { systemPrompt: null, defaultModelId: null, limits };
    expect(await user.get(settingsPath())).toEqual({ ...unset, updatedBy: null, updatedAt: null });
    const set = await put({ systemPrompt: 'Be brief.', defaultModelId: 'demo', limits: { maxStepsPerTurn: 3 } });
    expect(await set.json()).toMatchObject({ systemPrompt: 'Be brief.', defaultModelId: 'demo', updatedBy: user.id });
    expect(await (await put({})).json()).toMatchObject(unset);
  });

  test('The system prompt comes before everything else, with the day and the mode', async () => {
    await put({ systemPrompt: 'Call everybody Captain.' });
    await user.ask({ content: 'Who am I?', mode: 'work' });
    const [system] = toldFor('Who am I?').request.body.messages as { role: string; content: string }[];
    expect(system).toMatchObject({ role: 'system' });
    expect(system?.content).toContain('Call everybody Captain.');
    expect(system?.content).toContain('work mode');
    expect(system?.content).toContain(new Date().toISOString().slice(0, 10));
    const elsewhere = await product.user();
    await elsewhere.ask({ content: 'Who am I elsewhere?' });
    expect(toldFor('Who am I elsewhere?').told).not.toContain('Captain');
  });

  test('The default model answers messages that name no model', async () => {
    await put({ defaultModelId: 'gpt-4.1' });
    const modelOf = async (body: object) =>
      (await user.turn((await user.ask({ content: 'Hello', ...body })).turnId)).modelId;
    expect(await modelOf({})).toBe('gpt-4.1');
    expect(await modelOf({ modelId: 'fake-1' })).toBe('fake-1');
  });

  test('The limits on steps and output tokens hold', async () => {
    await put({ limits: { maxStepsPerTurn: 2, maxOutputTokens: 16 } });
    const tools = '/tool none {}\n/tool none {}\n/say a\n/tool none {}\n/say b\n/tool none {}';
    const looped = await user.ask({ content: tools, modelId: 'demo' });
    expect(looped.chunks.at(-1)).toMatchObject({ type: 'error', code: 'STEP_LIMIT' });
    const long = await user.ask({ content: '/tokens 100', modelId: 'demo' });
    expect(await user.turn(long.turnId)).toMatchObject({ finishReason: 'length', usage: { outputTokens: 16 } });
  });

  test.each([
    [{ defaultModelId: 'no-such-model' }, 422, 'MODEL_UNKNOWN'],
    [{ limits: { maxStepsPerTurn: 0 } }, 400, 'INVALID_REQUEST'],
    [{ unknown: 1 }, 400, 'INVALID_REQUEST'],
  ])('%j is refused', async (body, status, code) => {
    const response = await put(body);
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([status, code]);
  });

  test('404 for the settings of another tenant', async () => {
    const stranger = await product.user();
    expect((await stranger.fetch(settingsPath())).status).toBe(404);
    expect((await stranger.fetch(settingsPath(), { method: 'PUT', body: {} })).status).toBe(404);
  });

  test('a change is in the audit log', async () => {
    await put({ systemPrompt: 'Noted.' });
    const log = await user.get<{ data: { action: string }[] }>(`/api/spaces/${user.spaceId}/audit`);
    expect(log.data[0]).toMatchObject({ action: 'chat-settings.changed', userId: user.id });
  });
});

test('Anthropic is told what to cache, and the next turn has the same beginning', async () => {
  const first = await user.ask({ content: 'Cache this', modelId: 'claude-haiku-4-5' });
  await user.ask({ content: 'And that', modelId: 'claude-haiku-4-5', threadId: first.threadId });
  const [one = '', two = ''] = ['Cache this', 'And that'].map((text) => toldFor(text).told);
  const mark = '"cache_control":{"type":"ephemeral"}';
  expect([one, two].map((told) => told.split(mark).length - 1)).toEqual([2, 3]);
  type Body = { system: unknown; messages: unknown[] };
  const [before, after] = [one, two].map((told) => JSON.parse(told.replaceAll(`,${mark}`, '')) as Body);
  expect(after?.system).toEqual(before?.system);
  expect(after?.messages[0]).toEqual(before?.messages[0]);
});
