import { readFileSync } from 'node:fs';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { BillingDeps } from '../../activities/billing/deps.ts';
import { createBillingSweeps } from '../../activities/billing/sweeps.ts';
import type { ChatDeps } from '../../activities/chat/deps.ts';
import { createChatSweeps } from '../../activities/chat/sweeps.ts';
import type { CommonDeps } from '../../activities/deps.ts';
import { createOperationSweeps } from '../../activities/operations/sweeps.ts';
import { idBound } from '../../base/ids.ts';
import { titleStep } from '../../models/chat/modelCall.ts';
import { chatModels } from '../../models/chat/models.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await createTestEnvironment({ ATRIUM_RECORD_RETENTION_DAYS: '90' });
});
afterEach(() => environment.close());

const dayMs = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * dayMs);
const turnId = (days: number) => `${idBound('turn', daysAgo(days))}0123456789ABCDEF`;

async function insertTurn(days: number, { terminal = 1 } = {}): Promise<string> {
  const { pool } = environment.database;
  const id = turnId(days);
  const at = daysAgo(days);
  const status = terminal === 1 ? 'completed' : 'waiting';
  await pool.query(
    `INSERT INTO turns (id, thread_id, space_id, user_id, ordinal, status, terminal, user_message_id, assistant_message_id,
      mode, model_id, notification_priority, created_at) VALUES (?)`,
    [[id, `thr_${days}`, 'spc_1', 'usr_1', 1, status, terminal, 'm1', 'm2', 'ask', 'demo', 'default', at]],
  );
  const calls = [0, 1, 2, titleStep].map((step) => [id, step, 1, 1, 'demo', 'completed', 10, 2, 5, 1, at]);
  await pool.query(
    `INSERT INTO model_calls (turn_id, step, attempts, first_seq, model_id, status, input_tokens, cached_input_tokens,
      output_tokens, reasoning_tokens, started_at) VALUES ?`,
    [calls],
  );
  await pool.query('INSERT INTO tool_calls (id, turn_id, step, tool_name, input, status, created_at) VALUES (?)', [
    [`tcl_${days}`, id, 0, 'drive_read', '{}', 'succeeded', at],
  ]);
  await pool.query("INSERT INTO turn_contexts (turn_id, context) VALUES (?, '{}')", [id]);
  await pool.query('INSERT INTO turn_receipts (turn_id, seq) VALUES (?, 1)', [id]);
  await pool.query(
    'INSERT INTO completion_requests (turn_id, user_id, space_id, request_hash, conversation_hash, created_at) VALUES (?)',
    [[id, 'usr_1', 'spc_1', Buffer.alloc(32), Buffer.alloc(32), at]],
  );
  return id;
}

async function countsOf(id: string): Promise<number[]> {
  const tables = ['turns', 'model_calls', 'tool_calls', 'turn_contexts', 'turn_receipts', 'completion_requests'];
  const counts = tables.map(async (table) => {
    const column = table === 'turns' ? 'id' : 'turn_id';
    const [rows] = await environment.database.pool.query(`SELECT COUNT(*) AS n FROM ${table} WHERE ${column} = ?`, [
      id,
    ]);
    return (rows as { n: number }[])[0]?.n ?? -1;
  });
  return Promise.all(counts);
}

function run<T>(work: () => Promise<T>): Promise<T> {
  return new MockActivityEnvironment().run(work);
}

const deps = () => ({ config: environment.config, database: environment.database, workflows: {} });

test('The steps of old turns are removed, and their usage can still be read', async () => {
  const [old, recent] = [await insertTurn(91), await insertTurn(89)];
  const { ModelCall } = chatModels(environment.database);
  const usage = await ModelCall.usageOf(old);
  const { purgeOldTurns } = createChatSweeps(deps() as ChatDeps);
  expect(await run(purgeOldTurns)).toBe(7);
  expect(await countsOf(old)).toEqual([1, 1, 0, 0, 0, 0]);
  expect(await countsOf(recent)).toEqual([1, 4, 1, 1, 1, 1]);
  expect(usage).toEqual({ inputTokens: 30, cachedInputTokens: 6, outputTokens: 15, reasoningTokens: 3 });
  expect(await ModelCall.usageOf(old)).toEqual(usage);
  expect(await run(purgeOldTurns)).toBe(0);
});

test('An old turn that has not ended is left alone, and so are all later turns', async () => {
  const [before, waiting, after] = [
    await insertTurn(200),
    await insertTurn(150, { terminal: 0 }),
    await insertTurn(100),
  ];
  const { purgeOldTurns } = createChatSweeps(deps() as ChatDeps);
  await run(purgeOldTurns);
  expect(await countsOf(before)).toEqual([1, 1, 0, 0, 0, 0]);
  expect(await countsOf(waiting)).toEqual([1, 4, 1, 1, 1, 1]);
  expect(await countsOf(after)).toEqual([1, 4, 1, 1, 1, 1]);
  await environment.database.pool.query('UPDATE turns SET terminal = 1 WHERE id = ?', [waiting]);
  await run(purgeOldTurns);
  expect(await countsOf(after)).toEqual([1, 1, 0, 0, 0, 0]);
});

test('Old operations and holds that have ended are removed, and others stay', async () => {
  const { pool } = environment.database;
  const ages: [number, string][] = [
    [91, 'succeeded'],
    [91, 'running'],
    [89, 'failed'],
  ];
  for (const [index, [days, status]] of ages.entries()) {
    const at = daysAgo(days);
    const row = [`${idBound('operation', at)}${index}123456789ABCDEF`, 'deleteThread', 'usr_1', 'thr_1', status, at];
    await pool.query('INSERT INTO operations (id, kind, user_id, subject_id, status, created_at) VALUES (?)', [row]);
  }
  for (const [index, [days, status]] of ages.entries()) {
    const at = daysAgo(days);
    const state = status === 'running' ? 'open' : 'settled';
    await pool.query(
      `INSERT INTO billing_holds (id, space_id, user_id, model_id, amount, held, cost, parts, input_tokens, revision, status, day,
        created_at) VALUES (?)`,
      [[`hld_${index}`, 'spc_1', 'usr_1', 'demo', 1, 0, 1, '[]', 1, 1, state, at, at]],
    );
  }
  expect(await run(createOperationSweeps(deps() as CommonDeps).purgeOldOperations)).toBe(1);
  expect(await run(createBillingSweeps(deps() as BillingDeps).purgeOldHolds)).toBe(1);
  const [operations] = await pool.query('SELECT status FROM operations ORDER BY id');
  const [holds] = await pool.query('SELECT status FROM billing_holds ORDER BY id');
  expect(operations).toEqual([{ status: 'running' }, { status: 'failed' }]);
  expect(holds).toEqual([{ status: 'open' }, { status: 'settled' }]);
});

test('The page for operators lists every table with how long it is kept', async () => {
  const page = readFileSync('docs/operations.md', 'utf8');
  const section = page.slice(page.indexOf('## What is kept'), page.indexOf('## Backup'));
  const named = [...section.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  const [rows] = await environment.database.pool.query(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
  );
  expect(named.toSorted()).toEqual((rows as { name: string }[]).map(({ name }) => name).toSorted());
});
