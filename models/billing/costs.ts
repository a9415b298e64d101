import { idBound } from '../../base/ids.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/** The costs of a turn's steps, in micro-credits by step. Steps that have not ended are missing. */
export async function costsOfCalls(
  { pool }: Pick<Database, 'pool'>,
  turnId: string,
  steps: readonly number[],
): Promise<Map<number, number>> {
  if (steps.length === 0) return new Map();
  const stepOf = new Map(steps.map((step) => [`call:${turnId}:${step}`, step]));
  const sql = `SELECT t.source_id, e.amount FROM ledger_transactions t
      JOIN ledger_entries e ON e.transaction_id = t.id AND e.account = 'spent' WHERE t.source_id IN (?)`;
  const rows = await select(pool, sql, [[...stepOf.keys()]]);
  return new Map(rows.map(({ sourceId, amount }) => [stepOf.get(String(sourceId)) ?? -1, Number(amount)]));
}

/** The cost of a computer's minutes booked between two times, in micro-credits, for all users. */
export async function costOfComputer(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, computerId, from, to }: { spaceId: string; computerId: string; from: Date; to: Date },
): Promise<number> {
  const rows = await select(
    pool,
    `SELECT SUM(e.amount) AS micro FROM ledger_entries e
      JOIN ledger_transactions t ON t.id = e.transaction_id AND t.kind = 'computer' AND t.detail = ?
      WHERE e.space_id = ? AND e.transaction_id >= ? AND e.transaction_id < ? AND e.account = 'spent'`,
    [computerId, spaceId, idBound('ledgerTransaction', from), idBound('ledgerTransaction', to)],
  );
  return Number(rows[0]?.micro ?? 0);
}
