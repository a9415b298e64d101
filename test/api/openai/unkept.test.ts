import type { ChatUser, ThreadBody } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// `store: false`: an answer that should be in no list.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct(hurriedSweeper);
  user = await product.user();
});
afterAll(() => product.close());

async function ask(body: object): Promise<{ id: string; finish: string }> {
  const messages = [{ role: 'user', content: 'Xylophone' }];
  const response = await user.fetch('/v1/chat/completions', {
    method: 'POST',
    body: { model: 'fake-1', messages, ...body },
  });
  const { choices } = (await response.json()) as { choices: { finish_reason: string }[] };
  return { id: response.headers.get('x-thread-id') ?? '', finish: choices[0]?.finish_reason ?? '' };
}

const listed = async () =>
  (await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`)).data.map(({ id }) => id);

test('A thread that is not stored is in no list and no search, can be read by its id, and goes after a day', async () => {
  const kept = await ask({});
  const unkept = await ask({ store: false });
  expect(await listed()).toEqual([kept.id]);
  expect((await user.messages(unkept.id)).map(({ role }) => role)).toEqual(['user', 'assistant']);
  const found = await waitFor('the words to be found', async () => {
    const path = `/api/spaces/${user.spaceId}/threads/search?q=xylophone`;
    const { data } = await user.get<{ data: { threadId: string }[] }>(path);
    return data.length > 0 && data;
  });
  expect(JSON.stringify(found)).toContain(kept.id);
  expect(JSON.stringify(found)).not.toContain(unkept.id);

  const { pool } = product.environment.database;
  const [rows] = await pool.query('SELECT expires_at AS at FROM threads WHERE id = ?', [unkept.id]);
  expect((rows as { at: Date }[])[0]?.at.getTime()).toBeGreaterThan(Date.now() + 23 * 60 * 60_000);
  await pool.query('UPDATE threads SET expires_at = NOW() - INTERVAL 1 SECOND WHERE id = ?', [unkept.id]);
  await waitFor('the thread to go', async () => {
    const [left] = await pool.query('SELECT id FROM threads WHERE id = ?', [unkept.id]);
    return (left as object[]).length === 0;
  });
  expect(await listed()).toEqual([kept.id]);
});

test('A thread that the client names is kept', async () => {
  const named = await ask({ store: false, metadata: { thread_id: 'mine' } });
  expect(await listed()).toContain(named.id);
});
