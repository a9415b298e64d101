import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

// An answer may contain what only its own API key may read.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

async function makeKey(name: string, scopes: string[]): Promise<string> {
  const made = await user.fetch('/api/keys', { method: 'POST', body: { name, scopes } });
  return ((await made.json()) as { key: string }).key;
}

async function complete(key: string, content: string, headers: Record<string, string>) {
  const response = await fetch(`${product.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }], metadata: { server_tools: 'on' } }),
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
  });
  const answer = await response.text();
  expect({ status: response.status, answer }).toMatchObject({ status: 200 });
  return { turnId: response.headers.get('x-turn-id') ?? '', threadId: response.headers.get('x-thread-id') ?? '' };
}

test('The same request with the same Idempotency-Key begins one turn for each API key', async () => {
  const headers = { 'idempotency-key': 'shared by two keys' };
  const [all, chat] = await Promise.all([makeKey('all', ['*']), makeKey('chat', ['chat'])]);
  const first = await complete(all, '/tool drive_list {}', headers);
  const again = await complete(all, '/tool drive_list {}', headers);
  const other = await complete(chat, '/tool drive_list {}', headers);
  expect(again.turnId).toBe(first.turnId);
  expect(other.turnId).not.toBe(first.turnId);
  const parts = (await user.messages(other.threadId)).flatMap((message) => message.parts as object[]);
  expect(parts).toContainEqual(expect.objectContaining({ type: 'dynamic-tool', state: 'output-error' }));
});
