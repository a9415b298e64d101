import { execFileSync, spawn } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Chat } from '@ai-sdk/react';
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai';
import { AtriumChatTransport, AtriumError, createAtriumClient, visibleParts } from '../../client/src/index.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../builders/product.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

const root = join(import.meta.dirname, '..', '..');

/** The client of `client/` against a running Atrium, over a connection that breaks. */
let product: TestProduct;
let proxy: TcpProxy;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  proxy = await startTcpProxy(() => product.url);
  user = await product.user();
});
afterAll(async () => {
  await proxy.stop();
  await product.close();
});

type Options = ConstructorParameters<typeof AtriumChatTransport>[0];

type Init = Partial<ConstructorParameters<typeof Chat<UIMessage>>[0]>;

function buildChat(init: Init = {}, options: Partial<Options> = {}) {
  const errors: Error[] = [];
  const transport = new AtriumChatTransport({ baseUrl: proxy.url, token: async () => user.token, ...options });
  const chat = new Chat<UIMessage>({ ...init, transport, onError: (error) => errors.push(error) });
  return { chat, errors };
}

const shown = (message: UIMessage | undefined) =>
  (message === undefined ? [] : visibleParts(message)).map((part) => (part.type === 'text' ? part.text : '')).join('');
const metadataOf = (chat: Chat<UIMessage>) => chat.lastMessage?.metadata as { threadId: string; turnId: string };
const slow = (tokens: number) => fake({ tokens, intervalMs: 20 });
const wordsIn = (text: string) => text.split(' ').filter(Boolean);
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`);

test('The package of the client has the types of the contract', () => {
  const copy = temporaryFolder();
  for (const name of ['client', 'api/generated/types.gen.ts']) {
    cpSync(join(root, name), join(copy, name), { recursive: true, filter: (path) => !path.includes('node_modules') });
  }
  const inCheckout = readFileSync(join(copy, 'client/src/api.ts'), 'utf8');
  execFileSync('npm', ['pack', '--silent'], { cwd: join(copy, 'client') });
  execFileSync('tar', ['xzf', 'atrium-client-0.1.0.tgz'], { cwd: join(copy, 'client') });

  const types = readFileSync(join(root, 'api/generated/types.gen.ts'), 'utf8');
  expect(readFileSync(join(copy, 'client/package/src/api.ts'), 'utf8')).toBe(types);
  expect(readFileSync(join(copy, 'client/src/api.ts'), 'utf8')).toBe(inCheckout);
});

test('Every operation is called by its path, and failures are in `error`', async () => {
  const atrium = createAtriumClient({ baseUrl: proxy.url, token: user.token });
  const path = { spaceId: user.spaceId };
  const made = await atrium.POST('/api/spaces/{spaceId}/threads', { params: { path }, body: { title: 'Made here' } });
  expect(made.data?.title).toBe('Made here');
  const listed = await atrium.GET('/api/spaces/{spaceId}/threads', { params: { path, query: { limit: 1 } } });
  expect(listed.data?.data.map(({ id }) => id)).toEqual([made.data?.id]);
  const missing = await atrium.GET('/api/threads/{threadId}', { params: { path: { threadId: 'thr_none' } } });
  expect(missing.error).toMatchObject({ code: 'NOT_FOUND', status: 404 });
});

test('A chat has the messages and answers of its thread', async () => {
  const { chat, errors } = buildChat();
  await chat.sendMessage({ text: 'First' });
  await chat.sendMessage({ text: 'Second' });
  expect([chat.status, errors]).toEqual(['ready', []]);
  const stored = await user.messages(metadataOf(chat).threadId);
  expect(chat.messages.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
  expect(shown(chat.lastMessage)).toBe('Hello from the fake provider.');
});

test('An answer has every word once although its connection is cut three times', async () => {
  const { chat, errors } = buildChat();
  const sending = chat.sendMessage({ text: slow(100) });
  for (const enough of [10, 40, 70]) {
    await waitFor(`${enough} words`, () => wordsIn(shown(chat.messages[1])).length >= enough);
    proxy.cut();
  }
  await sending;
  expect([chat.status, errors]).toEqual(['ready', []]);
  expect(wordsIn(shown(chat.lastMessage))).toEqual(numbered(100));
});

test('a request whose answer is lost is sent again, and answered once', async () => {
  const { chat, errors } = buildChat();
  proxy.cut();
  proxy.cutAfter(0);
  await chat.sendMessage({ text: 'Lost on the way' });
  expect([chat.status, errors]).toEqual(['ready', []]);
  expect(requestsWith(product.provider, 'Lost on the way')).toHaveLength(1);
  expect((await user.messages(metadataOf(chat).threadId)).map(({ role }) => role)).toEqual(['user', 'assistant']);
});

test('The words of a failed attempt are not shown', async () => {
  const { chat } = buildChat();
  const text = 'Twice, please';
  product.provider.enqueue({ tokens: ['Half an ', 'answer'], fail: { how: 'cut' } });
  await chat.sendMessage({ text });
  expect(chat.lastMessage?.parts.filter(({ type }) => type === 'text')).toHaveLength(2);
  expect(shown(chat.lastMessage)).toBe('Hello from the fake provider.');
});

test('Stopping ends the turn, or only hangs up, as the setting says', async () => {
  for (const stopsTurns of [true, false]) {
    const { chat } = buildChat({}, { stopsTurns });
    const sending = chat.sendMessage({ text: slow(60) });
    await waitFor('the answer to begin', () => shown(chat.messages[1]) !== '');
    await chat.stop();
    await sending;
    expect((await user.ended(metadataOf(chat).turnId)).status).toBe(stopsTurns ? 'stopped' : 'completed');
  }
});

test('Stopping ends a turn also before anything is heard of the turn', async () => {
  const answer = Promise.withResolvers<void>();
  const late: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    await answer.promise;
    return response;
  };
  const id = 'client-stopped-early';
  const { chat, errors } = buildChat({ id }, { fetch: late, spaceId: user.spaceId });
  const sending = chat.sendMessage({ text: slow(600) });
  const turns = () => user.fetch(`/chat/stream/${id}/stream?spaceId=${user.spaceId}`);
  await waitFor('the turn to run', async () => (await turns()).status === 200);
  await chat.stop();
  await sending;
  answer.resolve();
  await waitFor('the turn to be stopped', async () => (await turns()).status === 204);
  expect(errors).toEqual([]);
});

test.each([true, false])('An approval is answered in the way of the AI SDK, with the decision %s', async (approved) => {
  const path = `/approved-${approved}.txt`;
  const { chat, errors } = buildChat(
    { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses },
    { body: { modelId: 'demo', mode: 'work' } },
  );
  await chat.sendMessage({ text: `/tool drive_write ${JSON.stringify({ path, content: 'x' })}` });
  await chat.sendMessage({ text: `/tool drive_delete ${JSON.stringify({ path })}` });
  const call = () => chat.lastMessage?.parts.find((part) => part.type === 'dynamic-tool');
  expect(call()).toMatchObject({ state: 'approval-requested', toolName: 'drive_delete' });
  await chat.addToolApprovalResponse({ id: call()?.approval?.id ?? '', approved });
  await waitFor('the end of the answer', () => chat.status === 'ready' && call()?.state.startsWith('output-'));
  expect([errors, chat.messages.length, call()?.state]).toEqual([
    [],
    4,
    approved ? 'output-available' : 'output-error',
  ]);
  const stored = await user.messages(metadataOf(chat).threadId);
  expect(stored.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
  const { data } = await user.get<{ data: { name: string }[] }>(`/api/spaces/${user.spaceId}/drive/items?path=/`);
  expect(data.some(({ name }) => `/${name}` === path)).toBe(!approved);
});

test('A page that is loaded again resumes the running answer, by the chat’s id and space', async () => {
  const spaceId = user.spaceId;
  const first = buildChat({ id: 'client-resumed' }, { spaceId });
  const sending = first.chat.sendMessage({ text: slow(60) });
  await waitFor('the answer to begin', () => shown(first.chat.messages[1]) !== '');
  const second = buildChat({ id: 'client-resumed', messages: structuredClone(first.chat.messages) }, { spaceId });
  await second.chat.resumeStream();
  await sending;
  expect(wordsIn(shown(second.chat.lastMessage))).toEqual(numbered(60));
  expect(second.chat.messages).toHaveLength(2);
  // No turn runs any more, and the other chat is unknown.
  for (const id of ['client-resumed', 'client-unheard-of']) {
    const idle = buildChat({ id }, { spaceId });
    await idle.chat.resumeStream();
    expect([idle.chat.status, idle.errors]).toEqual(['ready', []]);
  }
});

test('Messages can be regenerated and edited', async () => {
  const { chat, errors } = buildChat();
  await chat.sendMessage({ text: 'One' });
  await chat.sendMessage({ text: 'Two' });
  const [question] = chat.messages;
  await chat.regenerate({ messageId: chat.messages[1]?.id ?? '' });
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  await chat.sendMessage({ text: 'One, in other words', messageId: question?.id ?? '' });
  expect([chat.status, errors]).toEqual(['ready', []]);
  const stored = await user.messages(metadataOf(chat).threadId);
  expect(stored.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
  expect(stored[0]?.parts).toMatchObject([{ type: 'text', text: 'One, in other words' }]);
});

test('The example in a terminal lists the models and prints the answer', async () => {
  const example = fileURLToPath(new URL('../../client/examples/chat.ts', import.meta.url));
  const child = spawn(process.execPath, [example, proxy.url, user.token, 'fake-1'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end('Hello from a terminal\n');
  const output = await text(child.stdout);
  expect(output).toContain('Models: fake-1, demo');
  expect(output).toContain('Hello from the fake provider.');
});

test('A refusal is an error with its code, at once', async () => {
  const { chat, errors } = buildChat({}, { body: { modelId: 'no-such-model' } });
  await chat.sendMessage({ text: 'x' });
  expect(errors).toMatchObject([{ status: 422, code: 'MODEL_UNKNOWN' }]);
  expect(errors[0]).toBeInstanceOf(AtriumError);
  const stranger = buildChat({}, { token: 'wrong' });
  await stranger.chat.sendMessage({ text: 'x' });
  expect(stranger.errors).toMatchObject([{ status: 401 }]);
});

test('An answer is whole although everything is killed in its middle and started again', async () => {
  const { chat, errors } = buildChat();
  const sending = chat.sendMessage({ text: slow(150) });
  await waitFor('the answer to begin', () => wordsIn(shown(chat.messages[1])).length > 10);
  await product.process.kill('SIGKILL');
  await product.restart();
  await sending;
  expect([chat.status, errors]).toEqual(['ready', []]);
  expect(wordsIn(shown(chat.lastMessage))).toEqual(numbered(150));
});
