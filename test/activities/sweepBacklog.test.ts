import type { RowDataPacket } from 'mysql2';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

// A retention that is far behind, and work that is lost meanwhile.

const [turns, turnsPerInsert] = [80_000, 4_000];

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({ ...hurriedSweeper });
});
afterAll(() => product.close());

const day = 86_400_000;

async function insertOldTurns(): Promise<void> {
  const at = new Date(Date.now() - 30 * day);
  for (let from = 0; from < turns; from += turnsPerInsert) {
    const rows = Array.from({ length: turnsPerInsert }, (_, index) => {
      const id = `trn_${String(from + index).padStart(26, '0')}`;
      return [id, `thr_${id}`, 'spc_1', 'usr_1', 1, 'completed', 1, 'm1', 'm2', 'ask', 'demo', 'default', at, at];
    });
    await product.environment.database.pool.query(
      `INSERT INTO turns (id, thread_id, space_id, user_id, ordinal, status, terminal, user_message_id, assistant_message_id,
        mode, model_id, notification_priority, created_at, ended_at) VALUES ?`,
      [rows],
    );
  }
}

async function count(sql: string): Promise<number> {
  const [rows] = await product.environment.database.pool.query<RowDataPacket[]>(`SELECT COUNT(*) AS n FROM ${sql}`);
  return Number(rows[0]?.n);
}

const backlog = 'turns WHERE ended_at IS NOT NULL AND log_purged_at IS NULL';

test('an intent that is lost while old logs are removed is started long before they are gone', async () => {
  await insertOldTurns();
  await waitFor('the retention to be under way', async () => (await count(backlog)) < turns);
  // Of a space that is gone: the sweep starts it, and the operation ends by itself.
  await product.environment.database.pool.query(
    `INSERT INTO operations (id, kind, space_id, user_id, subject_id, status, created_at)
      VALUES ('op_00000000000000000000000001', 'deleteThread', NULL, 'usr_1', 'thr_1', 'running', ?)`,
    [new Date(Date.now() - 60_000)],
  );
  await waitFor('the operation to end', async () => (await count("operations WHERE status = 'running'")) === 0);
  expect(await count(backlog)).toBeGreaterThan(0);
});
