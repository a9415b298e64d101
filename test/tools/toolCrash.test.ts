import type { PoolConnection } from 'mysql2/promise';
import { type ChatUser, idsOf } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { toolLines, toolOutputs } from '../builders/tools.ts';
import { collect } from '../support/sseClient.ts';
import { waitFor } from '../support/waitFor.ts';

/** Tools whose process is killed, or whose turn is stopped, at a chosen moment: the test holds the row that the tool needs next. */
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  user = await product.user();
});
afterAll(() => product.close());

interface CallRow {
  status: string;
  begunAt: Date | null;
  effect: string | null;
}

async function callOf(turnId: string): Promise<CallRow | undefined> {
  const [rows] = await product.environment.database.pool.query(
    'SELECT status, begun_at AS begunAt, effect FROM tool_calls WHERE turn_id = ?',
    [turnId],
  );
  return (rows as CallRow[])[0];
}

/** Holds a row's lock until it is released. */
async function hold(sql: string, values: unknown[]): Promise<() => Promise<void>> {
  const connection: PoolConnection = await product.environment.database.pool.getConnection();
  await connection.beginTransaction();
  await connection.query(sql, values);
  return async () => {
    await connection.rollback();
    connection.release();
  };
}

const holdDrive = () => hold('SELECT * FROM drives WHERE space_id = ? FOR UPDATE', [user.spaceId]);
const holdTurn = (turnId: string) => hold('SELECT * FROM turns WHERE id = ? FOR UPDATE', [turnId]);

async function write(path: string) {
  const content = toolLines([['drive_write', { path, content: 'once', ifExists: 'rename' }]]);
  return user.send({ content, modelId: 'demo', mode: 'work' });
}

async function namesIn(path: string): Promise<unknown> {
  const { chunks } = await user.ask({ content: toolLines([['drive_list', { path }]]), modelId: 'demo' });
  const [listed] = toolOutputs(chunks) as [{ entries: { name: string }[] }];
  return listed.entries.map(({ name }) => name);
}

/** A turn whose tool waits for the drive. */
async function untilAtDrive(path: string) {
  await user.ask({
    content: toolLines([['drive_write', { path: `${path}/first`, content: '' }]]),
    modelId: 'demo',
    mode: 'work',
  });
  const release = await holdDrive();
  const stream = await write(`${path}/file.txt`);
  const { turnId } = idsOf(stream);
  await waitFor('the tool to begin', async () => (await callOf(turnId))?.begunAt);
  return { turnId, stream, release };
}

const resultOf = async (turnId: string) =>
  toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks);

test('killed before its effect: it is done once, by the next run', async () => {
  const { turnId, release } = await untilAtDrive('/before');
  await product.process.kill('SIGKILL');
  await release();
  await product.restart();
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(await resultOf(turnId)).toMatchObject([{ path: '/before/file.txt', version: 1 }]);
  expect(await namesIn('/before')).toEqual(['file.txt', 'first']);
});

test('killed after its effect and before its result: the effect is not repeated, and the result is its own', async () => {
  const { turnId, release } = await untilAtDrive('/after');
  const releaseTurn = await holdTurn(turnId);
  await release();
  await waitFor('the effect', async () => (await callOf(turnId))?.effect);
  expect(await callOf(turnId)).toMatchObject({ status: 'pending' });
  await product.process.kill('SIGKILL');
  await releaseTurn();
  await product.restart();
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(await callOf(turnId)).toMatchObject({ status: 'succeeded' });
  expect(await resultOf(turnId)).toMatchObject([{ path: '/after/file.txt', version: 1 }]);
  expect(await namesIn('/after')).toEqual(['file.txt', 'first']);
});

test('stopped before its effect: the turn ends at once, and the effect never comes', async () => {
  const { turnId, stream, release } = await untilAtDrive('/stopped');
  await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  const { chunks } = await collect(stream);
  expect(chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  expect(toolOutputs(chunks)).toEqual(['error: Stopped before it was done.']);
  expect(await callOf(turnId)).toMatchObject({ status: 'failed' });
  await release();
  expect(await namesIn('/stopped')).toEqual(['first']);
  expect(await callOf(turnId)).toMatchObject({ status: 'failed', effect: null });
});

test('stopped after its effect: the message says what was done', async () => {
  const { turnId, release } = await untilAtDrive('/late');
  await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  const releaseTurn = await holdTurn(turnId);
  await release();
  const { status } = await waitFor('the effect, or its refusal', async () => {
    const call = await callOf(turnId);
    return (call?.effect !== null || call.status !== 'pending') && call;
  });
  await releaseTurn();
  const turn = await user.ended(turnId);
  expect(turn).toMatchObject({ status: 'stopped' });
  // Whichever was first: what the message says and what the drive holds are the same.
  const names = (await namesIn('/late')) as string[];
  const [result] = await resultOf(turnId);
  expect(names.includes('file.txt')).toBe(typeof result === 'object');
  expect(status).toBe('pending');
});
