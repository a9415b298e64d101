import type { ChatUser } from '../../builders/chat.ts';
import { idsOf } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_MAX_STREAMS_PER_USER: '2' });
  user = await product.user();
});
afterAll(() => product.close());

const body = { content: fake({ tokens: 2_000, intervalMs: 20 }) };

test('A user has a limited number of streams, and one more gets 429 before anything is done', async () => {
  const [one, two] = [await user.send(body), await user.send(body)];
  const before = requestsOf();
  const refused = await user.fetch('/chat/stream', { method: 'POST', body: { content: 'One too many' } });
  expect([refused.status, await refused.json(), refused.headers.get('retry-after')]).toEqual([
    429,
    expect.objectContaining({ code: 'TOO_MANY_CONNECTIONS' }),
    '1',
  ]);
  const resumed = await user.fetch(`/chat/turns/${idsOf(one).turnId}/stream`);
  expect(resumed.status).toBe(429);
  expect(requestsOf()).toBe(before);
  // Another user has slots of their own, and requests without a stream need no slot.
  const other = await (await product.user()).send(body);
  expect((await user.fetch(`/chat/turns/${idsOf(one).turnId}`)).status).toBe(200);
  two.abort();
  const again = await waitFor('the slot of a stream that has ended', async () => {
    const response = await user.fetch(`/chat/turns/${idsOf(one).turnId}/stream`);
    await response.body?.cancel();
    return response.status === 200;
  });
  expect(again).toBe(true);
  one.abort();
  other.abort();
});

const requestsOf = () =>
  product.provider.requests.filter(({ body: sent }) => JSON.stringify(sent).includes('One too many')).length;
