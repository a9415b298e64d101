import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

// Operations that take longer bodies than others read two of each user at a time.

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

/** A request of which only the beginning arrives. Resolves once the server has read it. */
async function begun(as: ChatUser): Promise<ClientRequest> {
  const req = request(`${product.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${as.token}`,
      'content-type': 'application/json',
      'content-length': String(20 * 2 ** 20),
    },
  });
  req.on('error', () => undefined);
  // More than the connection holds by itself: the rest drains only when the server reads it.
  if (!req.write(Buffer.alloc(16 * 2 ** 20, ' '))) await once(req, 'drain');
  return req;
}

const send = async (as: ChatUser, mebibytes: number): Promise<number> => {
  const response = await fetch(`${product.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${as.token}`, 'content-type': 'application/json' },
    body: body(mebibytes),
  });
  await response.text();
  return response.status;
};

test('A third large body of a user waits, and everything else is answered meanwhile', async () => {
  const [first, second] = await Promise.all([begun(user), begun(user)]);
  let isAnswered = false;
  const third = send(user, 2).finally(() => {
    isAnswered = true;
  });
  expect(await send(user, 0.1)).toBe(200);
  expect(await send(await product.user(), 2)).not.toBe(413);
  expect((await user.fetch('/v1/models')).status).toBe(200);
  expect(isAnswered).toBe(false);
  first.destroy();
  expect(await third).not.toBe(413);
  second.destroy();
});

test('Other operations take 1 MiB as before', async () => {
  const response = await user.fetch('/chat/stream', { method: 'POST', body: { content: 'x'.repeat(1_100_000) } });
  expect(response.status).toBe(413);
});
