import { type ChatUser, type ThreadBody, toolsNamed } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

// The requests that chat programs send beside a chat, by the first words of their templates.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

const titlesOf = async () =>
  (await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`)).data.map(({ title }) => title);

async function ask(messages: { role: string; content: string }[], more: object = {}): Promise<void> {
  const body = { model: 'fake-1', messages, ...more };
  const response = await user.fetch('/v1/chat/completions', { method: 'POST', body });
  expect({ status: response.status, body: await response.json() }).toMatchObject({ status: 200 });
}

const asUser = (content: string) => ({ role: 'user', content });

test.each([
  ['Open WebUI', [asUser('### Task:\nSuggest 3-5 relevant follow-up questions.')]],
  [
    'opencode',
    [
      { role: 'system', content: 'You are a title generator. You output ONLY a thread title. Nothing else.' },
      asUser('Generate a title for this conversation:\n'),
      asUser('Fix the build'),
    ],
  ],
  [
    'Continue',
    [asUser('Given the following... please reply with a title for the chat that is 3-4 words in length.\n\nThe build')],
  ],
  [
    'LibreChat',
    [asUser('Provide a concise, 5-word-or-less title for the conversation, using title case.\n\nUser: Hi')],
  ],
])('A request of %s for a title or the like is in no list', async (_client, messages) => {
  const before = await titlesOf();
  await ask(messages);
  expect(await titlesOf()).toEqual(before);
});

test('The same words in a chat, or with tools, are a thread like others', async () => {
  await ask([asUser('### Task:\nWith a tool')], { tools: toolsNamed('title') });
  await ask([asUser('Hi'), { role: 'assistant', content: 'Hello' }, asUser('### Task:\nIn a chat')]);
  await ask([asUser('### Task:\nRespond to the user query using the provided context.')]);
  await ask([asUser('Please, generate a title for my book')]);
  expect(await titlesOf()).toEqual([
    'Please, generate a title for my book',
    '### Task: Respond to the user query using the provided context.',
    'Hi',
    '### Task: With a tool',
  ]);
});
