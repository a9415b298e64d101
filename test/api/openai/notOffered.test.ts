import { type ChatUser, toolsNamed } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

// A model may call a tool that it was not offered. The demo model calls what its message says.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

interface Choice {
  finish_reason: string;
  message: { content: string | null; tool_calls?: { function: { name: string } }[] };
}

async function complete(content: string, more: object = {}, headers: Record<string, string> = {}) {
  const body = { model: 'demo', messages: [{ role: 'user', content }], ...more };
  const response = await user.fetch('/v1/chat/completions', { method: 'POST', body, headers });
  const answer = (await response.json()) as { choices: Choice[] };
  expect({ status: response.status, answer }).toMatchObject({ status: 200 });
  return { choice: answer.choices[0], threadId: response.headers.get('x-thread-id') ?? '' };
}

/** The states of the tool calls in the answer. */
async function callsIn(threadId: string): Promise<object[]> {
  const parts = (await user.messages(threadId)).flatMap((message) => message.parts as { type: string }[]);
  return parts.filter(({ type }) => type === 'dynamic-tool');
}

const write = (path: string) => `/tool drive_write ${JSON.stringify({ path, content: 'Written.' })}`;
const refused = { state: 'output-error', errorText: expect.stringContaining('was not offered') };
const on = { metadata: { mode: 'work', server_tools: 'on' } };

test.each<[string, string, object, Record<string, string>]>([
  ['without tools of the space', write('/off.txt'), {}, { 'x-mode': 'work', 'x-server-tools': 'off' }],
  ['without a word about tools', '/tool drive_list {}', {}, {}],
  [
    'with a tool that needs approval',
    '/tool drive_delete {"path":"/a.txt"}',
    {},
    { 'x-mode': 'work', 'x-server-tools': 'off' },
  ],
  ['in a helper call', `### Task:\nSuggest tags.\n${write('/helper.txt')}`, on, {}],
  ['with a function of the same area', write('/area.txt'), { ...on, tools: toolsNamed('drive_read') }, {}],
  ['with a forced choice', write('/forced.txt'), { ...on, tools: toolsNamed('look_up'), tool_choice: 'required' }, {}],
])('A tool of the space does not run in a request %s', async (_name, content, more, headers) => {
  const { choice, threadId } = await complete(content, more, headers);
  expect(choice?.finish_reason).toBe('stop');
  expect(await callsIn(threadId)).toEqual([expect.objectContaining(refused)]);
});

test('A tool of the space runs in a request that asks for them', async () => {
  const { threadId } = await complete(write('/on.txt'), { ...on, tools: toolsNamed('look_up') });
  expect(await callsIn(threadId)).toEqual([expect.objectContaining({ state: 'output-available' })]);
});

test.each<[string, unknown]>([
  ['none', 'none'],
  ['another one', { type: 'function', function: { name: 'refund' } }],
])('A client that chose %s of its functions gets no call of the function', async (_name, choice) => {
  const tools = toolsNamed('look_up', 'refund');
  const answered = await complete('/tool look_up {}', { tools, tool_choice: choice });
  expect(answered.choice?.finish_reason).toBe('stop');
  expect(answered.choice?.message.tool_calls).toBeUndefined();
  expect(await callsIn(answered.threadId)).toEqual([expect.objectContaining(refused)]);
});
