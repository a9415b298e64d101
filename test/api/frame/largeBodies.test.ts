import { type ClientRequest, request } from 'node:http';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

// Operations that take longer bodies than others receive them on the disk, and parse two of each user at a time.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

const body = (mebibytes: number) => {
  const content = 'word '.repeat((mebibytes * 2 ** 20) / 5);
  return JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: `/say Heard\n${content}` }] });
};

const send = async (as: ChatUser, mebibytes: number): Promise<number> => {
  const response = await fetch(`${product.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${as.token}`, 'content-type': 'application/json' },
    body: body(mebibytes),
  });
  await response.text();
  return response.status;
};

/** A body of unknown length of which little has arrived. */
async function begun(as: ChatUser): Promise<ClientRequest> {
  const headers = { authorization: `Bearer ${as.token}`, 'content-type': 'application/json' };
  const req = request(`${product.url}/v1/chat/completions`, { method: 'POST', headers });
  req.on('error', () => undefined);
  await new Promise((resolve) => req.write('{', resolve));
  return req;
}

test('Large bodies are answered while others send theirs slowly, and many of one user after another', async () => {
  const others = await Promise.all([1, 2, 3, 4].map(() => product.user()));
  const slow = await Promise.all([...others, ...others, user, user, user].map(begun));
  const sent = await Promise.all([...Array(6).fill(user), ...others].map((as) => send(as, 1.2)));
  expect(sent).toEqual(Array(10).fill(200));
  for (const req of slow) req.destroy();
});

test('Other operations take 1 MiB as before', async () => {
  const response = await user.fetch('/chat/stream', { method: 'POST', body: { content: 'x'.repeat(1_100_000) } });
  expect(response.status).toBe(413);
});
