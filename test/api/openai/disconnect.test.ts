import { keepAttending } from '../../../models/chat/attendance.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../../builders/product.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// Stop in a chat program closes the connection.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct(hurriedSweeper);
  user = await product.user();
});
afterAll(() => product.close());

const endless = (text: string) => fake({ tokens: 3_000, intervalMs: 50 }, text);

/** Begins a streamed answer, and waits for its first words. */
async function begin(content: string, headers: Record<string, string> = {}, more: object = {}) {
  const leaving = new AbortController();
  const body = { model: 'fake-1', messages: [{ role: 'user', content }], stream: true, ...more };
  const response = await fetch(`${product.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: leaving.signal,
  });
  expect(response.status).toBe(200);
  await response.body?.getReader().read();
  return { turnId: response.headers.get('x-turn-id') ?? '', leave: () => leaving.abort() };
}

test('A turn stops when its client has left, and the provider’s answer with it', async () => {
  const { turnId, leave } = await begin(endless('Stop me'));
  leave();
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
  const [request] = requestsWith(product.provider, 'Stop me');
  expect(request && (await product.provider.closed(request)).closedByClient).toBe(true);
});

test('A client that repeats its request soon gets the same turn, which goes on', async () => {
  const content = fake({ tokens: 120, intervalMs: 60 }, 'A blip');
  const first = await begin(content);
  first.leave();
  const again = await begin(content, { 'x-stainless-retry-count': '1' });
  expect(again.turnId).toBe(first.turnId);
  expect(await user.ended(first.turnId)).toMatchObject({ status: 'completed' });
});

test('A turn goes on while one of the clients that wait for it stays, and stops when the last one has left', async () => {
  const content = endless('Twins');
  const stays = await begin(content);
  const leaves = await begin(content, { 'x-stainless-retry-count': '1' });
  expect(leaves.turnId).toBe(stays.turnId);
  leaves.leave();
  // The time until the turn stops for a client that left alone is over.
  const alone = await begin(endless('Alone'));
  alone.leave();
  expect(await user.ended(alone.turnId)).toMatchObject({ status: 'stopped' });
  expect(await user.turn(stays.turnId)).toMatchObject({ status: 'running' });
  // A renewal that belongs to nobody any more changes nothing.
  stays.leave();
  expect(await user.ended(stays.turnId)).toMatchObject({ status: 'stopped' });
  const { database } = product.environment;
  await keepAttending(database, stays.turnId);
  expect(await unattendedSince(stays.turnId)).toBe(true);
});

async function unattendedSince(turnId: string): Promise<boolean> {
  const sql = 'SELECT attending = 0 AND attended_until <= ? AS isOver FROM completion_requests WHERE turn_id = ?';
  const [rows] = await product.environment.database.pool.query(sql, [new Date(), turnId]);
  return (rows as { isOver: number }[])[0]?.isOver === 1;
}

test('A client that repeats its request late gets a new turn', async () => {
  const content = endless('A long blip');
  const first = await begin(content);
  first.leave();
  await user.ended(first.turnId);
  const again = await begin(content, { 'x-stainless-retry-count': '1' });
  expect(again.turnId).not.toBe(first.turnId);
  again.leave();
  await user.ended(again.turnId);
});

test('The metadata go before the header and the key', async () => {
  const headers = { 'x-on-disconnect': 'continue', 'Idempotency-Key': 'metadata-first' };
  const { turnId, leave } = await begin(endless('By metadata'), headers, { metadata: { on_disconnect: 'stop' } });
  leave();
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
});

test('The sweeper stops a turn whose client and process are both gone', async () => {
  const { turnId, leave } = await begin(endless('Forgotten'), { 'x-on-disconnect': 'continue' });
  leave();
  const { pool } = product.environment.database;
  // As if the process that answered had died, some time ago: it is still counted.
  const sql = `UPDATE completion_requests SET attending = 1, attended_until = NOW() - INTERVAL 1 SECOND
    WHERE turn_id = ?`;
  await pool.query(sql, [turnId]);
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
});

test('A turn in the queue of a named thread stops, too', async () => {
  const metadata = { thread_id: 'queue-of-one', on_disconnect: 'continue' };
  const running = await begin(endless('The running one'), {}, { metadata });
  const leaving = new AbortController();
  const queued = fetch(`${product.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'fake-1',
      messages: [{ role: 'user', content: 'The queued one' }],
      metadata: { thread_id: 'queue-of-one' },
    }),
    signal: leaving.signal,
  }).catch(() => undefined);
  const { threadId } = await user.turn(running.turnId);
  const inQueue = () =>
    user
      .get<{ data: { id: string; status: string }[] }>(`/api/threads/${threadId}/turns`)
      .then(({ data }) => data.find(({ id }) => id !== running.turnId));
  const turn = await waitFor('the turn in the queue', inQueue);
  expect(turn.status).toBe('queued');
  leaving.abort();
  await queued;
  expect(await user.ended(turn.id)).toMatchObject({ status: 'stopped' });
  await user.fetch(`/chat/turns/${running.turnId}/stop`, { method: 'POST' });
  await user.ended(running.turnId);
});
