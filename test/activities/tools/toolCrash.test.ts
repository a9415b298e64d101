import type { PoolConnection } from 'mysql2/promise';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

/**
 * Tools whose process is killed, or whose turn is stopped, at a chosen moment. The test locks the row that the tool
 * needs next.
 */
let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
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

const holdDrive = (user: ChatUser) => hold('SELECT * FROM drives WHERE space_id = ? FOR UPDATE', [user.spaceId]);
const holdTurn = (turnId: string) => hold('SELECT * FROM turns WHERE id = ? FOR UPDATE', [turnId]);

async function namesIn(user: ChatUser, path: string): Promise<string[]> {
  const { chunks } = await user.ask({ content: toolLines([['drive_list', { path }]]), modelId: 'demo' });
  const [listed] = toolOutputs(chunks) as [{ entries: { name: string }[] }];
  return listed.entries.map(({ name }) => name);
}

/** A turn whose tool waits for the locked drive of a new user. */
async function untilAtDrive() {
  const user = await product.user();
  const work = { modelId: 'demo', mode: 'work' };
  await user.ask({ content: toolLines([['drive_write', { path: '/a/first', content: '' }]]), ...work });
  const release = await holdDrive(user);
  const writing = { path: '/a/file.txt', content: 'once', ifExists: 'rename' };
  const stream = await user.send({ content: toolLines([['drive_write', writing]]), ...work });
  const { turnId } = idsOf(stream);
  await waitFor('the tool to begin', async () => (await callOf(turnId))?.begunAt);
  const result = async () => toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks);
  return { user, turnId, stream, release, result };
}

test('A tool killed before its effect, or between effect and result, takes effect once and gets its own result', async () => {
  const [before, after] = await Promise.all([untilAtDrive(), untilAtDrive()]);
  const releaseTurn = await holdTurn(after.turnId);
  await after.release();
  await waitFor('the effect', async () => (await callOf(after.turnId))?.effect);
  expect(await callOf(after.turnId)).toMatchObject({ status: 'pending' });
  expect(await callOf(before.turnId)).toMatchObject({ status: 'pending', effect: null });
  await product.process.kill('SIGKILL');
  await Promise.all([before.release(), releaseTurn()]);
  await product.restart();
  for (const { user, turnId, result } of [before, after]) {
    expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
    expect(await callOf(turnId)).toMatchObject({ status: 'succeeded' });
    expect(await result()).toMatchObject([{ path: '/a/file.txt', version: 1 }]);
    expect(await namesIn(user, '/a')).toEqual(['file.txt', 'first']);
  }
});

test('A turn stopped before its tool’s effect ends at once, and the effect never happens', async () => {
  const { user, turnId, stream, release } = await untilAtDrive();
  await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  const { chunks } = await collect(stream);
  expect(chunks.at(-1)).toEqual({ type: 'abort', reason: 'stopped' });
  expect(toolOutputs(chunks)).toEqual(['error: The turn was stopped before this call finished.']);
  expect(await callOf(turnId)).toMatchObject({ status: 'failed' });
  await release();
  expect(await namesIn(user, '/a')).toEqual(['first']);
  expect(await callOf(turnId)).toMatchObject({ status: 'failed', effect: null });
});

test('The message of a turn stopped during its tool’s effect says what was done', async () => {
  const { user, turnId, release, result } = await untilAtDrive();
  await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  const releaseTurn = await holdTurn(turnId);
  await release();
  const { status } = await waitFor('the effect, or its refusal', async () => {
    const call = await callOf(turnId);
    return (call?.effect !== null || call.status !== 'pending') && call;
  });
  await releaseTurn();
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
  // Whichever came first, the message agrees with the drive.
  const [said] = await result();
  expect((await namesIn(user, '/a')).includes('file.txt')).toBe(typeof said === 'object');
  expect(status).toBe('pending');
});
