import type { ChatUser, ThreadBody } from '../../builders/chat.ts';
import { buildProduct, requestsWith, rolesOf, type TestProduct } from '../../builders/product.ts';

// The requests of Open WebUI: its list of models, the messages of a chat with its whole history, and its requests
// beside the chat for titles, tags and further questions.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

interface Said {
  role: string;
  content: string;
}

const model = 'fake-1';
const titleTask = [
  '### Task:',
  'Generate a concise, 3-5 word title with an emoji summarizing the chat history.',
  '### Output:',
  'JSON format: { "title": "your concise title here" }',
  '### Chat History:',
  '<chat_history>',
  'USER: What is a turn?',
  '</chat_history>',
].join('\n');

const post = (body: object, headers: Record<string, string> = {}) =>
  user.fetch('/v1/chat/completions', { method: 'POST', body, headers });

/** Sends the messages of a chat, and returns the answer that is shown. */
async function chat(messages: Said[], headers: Record<string, string> = {}) {
  const response = await post({ model, messages, stream: true, stream_options: { include_usage: true } }, headers);
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const text = await response.text();
  const events = text.split('\n\n').filter((event) => event.startsWith('data: '));
  expect(events.at(-1)).toBe('data: [DONE]');
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)));
  const content = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
  return { content, threadId: response.headers.get('x-thread-id') };
}

const threads = async () => (await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`)).data;

test('Open WebUI gets the list of models', async () => {
  const { object, data } = await user.get<{ object: string; data: { id: string }[] }>('/v1/models');
  expect([object, data.map(({ id }) => id)]).toEqual(['list', ['fake-1', 'demo']]);
});

test('A chat is one thread, although each request has the whole history', async () => {
  const messages: Said[] = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'What is a turn?' },
  ];
  const first = await chat(messages);
  // Open WebUI may trim the answer that it has shown.
  messages.push({ role: 'assistant', content: `${first.content}\n` }, { role: 'user', content: 'And a thread?' });
  const second = await chat(messages);
  expect(second.threadId).toBe(first.threadId);
  messages.push({ role: 'assistant', content: second.content }, { role: 'user', content: 'And a space?' });
  expect((await chat(messages)).threadId).toBe(first.threadId);
  const [request] = requestsWith(product.provider, 'And a space?');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'user', 'assistant', 'user']);
  expect(await threads()).toMatchObject([{ id: first.threadId, title: 'What is a turn?' }]);
});

test('An edited answer and a second branch are threads of their own', async () => {
  const question = { role: 'user', content: 'Edit me' };
  const first = await chat([question]);
  const reply = { role: 'assistant', content: first.content };
  const edited = await chat([question, { ...reply, content: 'Something else.' }, { role: 'user', content: 'One' }]);
  const branch = await chat([question, reply, { role: 'user', content: 'Two' }]);
  const other = await chat([question, reply, { role: 'user', content: 'Three' }]);
  expect(branch.threadId).toBe(first.threadId);
  expect(new Set([first.threadId, edited.threadId, other.threadId]).size).toBe(3);
  const [request] = requestsWith(product.provider, 'Three');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(JSON.stringify(request?.body.messages)).not.toContain('Two');
});

test('A user cannot go on with another user’s thread', async () => {
  const question = { role: 'user', content: 'Said by two' };
  const first = await chat([question]);
  const stranger = await product.user();
  const messages = [question, { role: 'assistant', content: first.content }, { role: 'user', content: 'Mine?' }];
  const response = await stranger.fetch('/v1/chat/completions', { method: 'POST', body: { model, messages } });
  expect(response.headers.get('x-thread-id')).not.toBe(first.threadId);
});

test('Requests beside a chat are answered without tools, and kept in no list, whatever thread they name', async () => {
  const before = await threads();
  const headers = { 'x-thread-id': 'a-chat-of-open-webui' };
  const { threadId } = await chat([{ role: 'user', content: 'A chat by header' }], headers);
  const body = { model, messages: [{ role: 'user', content: titleTask }], stream: false, max_completion_tokens: 1000 };
  const response = await post(body, headers);
  const { choices } = (await response.json()) as { choices: { message: Said }[] };
  expect(choices[0]?.message.content).toBe('Hello from the fake provider.');
  expect(requestsWith(product.provider, 'concise, 3-5 word title')[0]?.body.tools).toBeUndefined();
  expect(response.headers.get('x-thread-id')).not.toBe(threadId);
  expect((await threads()).length).toBe(before.length + 1);
});
