import type { ChatUser, ThreadBody } from '../../builders/chat.ts';
import { buildProduct, requestsWith, rolesOf, type TestProduct } from '../../builders/product.ts';

// A conversation from elsewhere becomes the beginning of a thread, which is then like any other.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

const model = 'fake-1';
const call = (id: string, args: string) => ({ id, type: 'function', function: { name: 'look_up', arguments: args } });
const conversation = [
  { role: 'user', content: 'Who was Ada?' },
  {
    role: 'assistant',
    content: 'One moment.',
    tool_calls: [call('call_1', '{"name":"Ada"}'), call('call_2', 'no JSON')],
  },
  { role: 'tool', tool_call_id: 'call_1', content: 'A mathematician.' },
  { role: 'assistant', content: 'She was a mathematician.' },
  { role: 'user', content: 'Thank you' },
];

async function complete(messages: object[], more: object = {}): Promise<string> {
  const body = { model, messages, ...more };
  const response = await user.fetch('/v1/chat/completions', { method: 'POST', body });
  expect({ status: response.status, body: await response.json() }).toMatchObject({ status: 200 });
  return response.headers.get('x-thread-id') ?? '';
}

test('Tool calls and their results reach the model, and a missing result is named', async () => {
  const threadId = await complete(conversation);
  const [request] = requestsWith(product.provider, 'Thank you');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool', 'tool', 'assistant', 'user']);
  const told = JSON.stringify(request?.body.messages);
  expect(told).toContain('A mathematician.');
  expect(told).toContain('There is no result.');
  const messages = await user.messages(threadId);
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
  expect(messages[1]?.parts.map(({ type }) => type)).toEqual([
    ...['step-start', 'text', 'dynamic-tool', 'dynamic-tool'],
    ...['step-start', 'text'],
  ]);
});

test('Arguments that no body could have are kept as text', async () => {
  const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
  const odd = ['{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"__proto__":{"a":1}}', deep];
  const calls = odd.map((text, index) => call(`odd_${index}`, text));
  const threadId = await complete([
    { role: 'user', content: 'Look up' },
    { role: 'assistant', tool_calls: calls },
    { role: 'user', content: 'And now?' },
  ]);
  const [, answer] = await user.messages(threadId);
  const inputs = answer?.parts.flatMap((part) => (part.type === 'dynamic-tool' ? [part.input] : []));
  expect(inputs).toEqual(odd.map((text) => ({ arguments: text })));
});

test('A conversation that stopped at tool results goes on, with a message of the user or without', async () => {
  const stopped = conversation.slice(0, 3);
  await complete([...stopped, { role: 'user', content: 'Go on, then' }]);
  const [request] = requestsWith(product.provider, 'Go on, then');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool', 'tool', 'user']);
  const refused = await user.fetch('/v1/chat/completions', { method: 'POST', body: { model, messages: stopped } });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { code: 'TOOL_RESULT_MISSING', param: 'messages' } });
  const rest = { role: 'tool', tool_call_id: 'call_2', content: 'Nobody of that name.' };
  const threadId = await complete([...stopped, rest]);
  const [second] = requestsWith(product.provider, 'Nobody of that name.');
  expect(rolesOf(second)).toEqual(['system', 'user', 'assistant', 'tool', 'tool']);
  expect((await user.messages(threadId)).map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant']);
});

test('System messages alone become the user’s message', async () => {
  const threadId = await complete([{ role: 'system', content: 'Say which day it is.' }]);
  expect(rolesOf(requestsWith(product.provider, '"Say which day it is.')[0])).toEqual(['system', 'user']);
  expect((await user.messages(threadId)).map(({ role }) => role)).toEqual(['user', 'assistant']);
});

test('The thread can be copied, exported, continued and deleted like others', async () => {
  const threadId = await complete(
    conversation.map((message) => ({ ...message })),
    { store: null },
  );
  const path = `/api/threads/${threadId}`;
  const copied = await user.fetch(`${path}/fork`, { method: 'POST', body: {} });
  expect(copied.status).toBe(201);
  const copy = (await copied.json()) as ThreadBody;
  const texts = async (id: string) => (await user.messages(id)).map(({ parts }) => parts);
  expect(await texts(copy.id)).toEqual(await texts(threadId));
  const exported = await user.fetch(`${path}/export`);
  expect(await exported.text()).toContain('She was a mathematician.');
  await user.ask({ threadId, content: 'By the app', modelId: model });
  expect(rolesOf(requestsWith(product.provider, 'By the app')[0])).toHaveLength(9);
  expect((await user.fetch(path, { method: 'DELETE' })).status).toBe(204);
  expect((await user.fetch(path)).status).toBe(404);
});

test('System and developer messages are instructions for their own answer only', async () => {
  const metadata = { thread_id: 'with-instructions' };
  const system = { role: 'system', content: 'Answer as a poet.' };
  const developer = { role: 'developer', content: [{ type: 'text', text: 'In four lines.' }] };
  await complete([system, developer, { role: 'user', content: 'Instructed' }], { metadata });
  await complete([{ role: 'user', content: 'Not instructed' }], { metadata });
  const systemOf = (text: string) => {
    const messages = requestsWith(product.provider, text)[0]?.body.messages as { content: string }[] | undefined;
    return messages?.[0]?.content;
  };
  expect(systemOf('"Instructed')).toBe('Answer as a poet.\n\nIn four lines.');
  expect(systemOf('Not instructed')).not.toContain('poet');
});

const titleOf = async (messages: object[]) => {
  const threadId = await complete(messages);
  const { data } = await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`);
  return data.find(({ id }) => id === threadId)?.title;
};
const asFile = (filename: string) => ({ type: 'file', file: { filename, file_data: 'data:text/plain;base64,SGk=' } });
const asUser = (content: unknown) => ({ role: 'user', content });
const answer = { role: 'assistant', content: 'Yes.' };

test.each([
  ['its only message', [asUser('Just  this\nline')], 'Just this line'],
  ['the user’s first message', [asUser('How it began'), answer, asUser('The newest question')], 'How it began'],
  ['the words beside a file', [asUser([asFile('notes.txt'), { type: 'text', text: 'Read them' }])], 'Read them'],
  ['its file without words', [asUser([asFile('notes.txt')]), answer, asUser('And then?')], 'notes.txt'],
  ['nothing', [answer, asUser([{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }])], 'Untitled'],
])('A thread is named after %s', async (_what, messages, title) => {
  expect(await titleOf(messages)).toBe(title);
});

test('A thread keeps its name when it goes on', async () => {
  const first = await complete([asUser('The name of the thread')]);
  const said = (await user.messages(first))[1]?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  expect(
    await titleOf([asUser('The name of the thread'), { role: 'assistant', content: said }, asUser('Another question')]),
  ).toBe('The name of the thread');
});
