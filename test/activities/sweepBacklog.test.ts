import type { RowDataPacket } from 'mysql2';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

// The removal of old turn logs is far behind, and an operation is lost meanwhile.

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

test('A lost operation is started while a backlog of old logs is still being removed', async () => {
  await insertOldTurns();
  await waitFor('the sweep to remove the first logs', async () => (await count(backlog)) < turns);
  // The operation's space is gone, so the operation ends by itself after the sweep starts it.
  await product.environment.database.pool.query(
    `INSERT INTO operations (id, kind, space_id, user_id, subject_id, status, created_at)
      VALUES ('op_00000000000000000000000001', 'deleteThread', NULL, 'usr_1', 'thr_1', 'running', ?)`,
    [new Date(Date.now() - 60_000)],
  );
  await waitFor('the operation to end', async () => (await count("operations WHERE status = 'running'")) === 0);
  expect(await count(backlog)).toBeGreaterThan(0);
});
