import { type ChatUser, toolsNamed } from '../../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../../builders/product.ts';

// The tools that clients bring have any names, also those of the space's tools.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

interface Answer {
  choices: { finish_reason: string; message: { content: string | null; tool_calls?: { function: object }[] } }[];
}

async function complete(content: string, more: object): Promise<Answer> {
  const body = { model: 'fake-1', messages: [{ role: 'user', content }], ...more };
  const response = await user.fetch('/v1/chat/completions', { method: 'POST', body });
  const answer = await response.json();
  expect({ status: response.status, answer }).toMatchObject({ status: 200 });
  return answer as Answer;
}

function offered(text: string): string[] {
  const tools = requestsWith(product.provider, text)[0]?.body.tools as { function: { name: string } }[];
  return tools.map((tool) => tool.function.name);
}

const names = [
  ...['git_status', 'browser_navigate', 'computer_use', 'mcp__github__search', 'ask_user', 'web_search', 'drive_read'],
  ...['123', '_private', 'with-dash', 'x'.repeat(64)],
];

test.each(names)('A client’s tool named %s is offered, and its call comes to the client', async (name) => {
  const call = { id: 'call-1', name, arguments: '{"a":1}' };
  const { choices } = await complete(fake({ toolCalls: [call] }, `Calls ${name}`), { tools: toolsNamed(name) });
  expect(choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: { tool_calls: [{ function: { name, arguments: '{"a":1}' } }] },
  });
  expect(offered(`Calls ${name}`)).toEqual([name]);
});

test('The space’s tools of the same area are left out, and the others are offered', async () => {
  const metadata = { server_tools: 'on' };
  await complete('Both kinds', { metadata, tools: toolsNamed('drive_read', 'mcp__a__b', 'git_commit') });
  const all = offered('Both kinds');
  expect(all).toEqual(expect.arrayContaining(['drive_read', 'mcp__a__b', 'git_commit', 'web_fetch', 'database_list']));
  expect(all.filter((name) => name.startsWith('drive_') || name.startsWith('git_'))).toEqual([
    'drive_read',
    'git_commit',
  ]);
});

test('128 tools are accepted', async () => {
  await complete('So many tools', { tools: toolsNamed(...Array.from({ length: 128 }, (_, n) => `tool_${n}`)) });
  expect(offered('So many tools')).toHaveLength(128);
});
