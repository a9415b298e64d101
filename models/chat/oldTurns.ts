import type { Transaction } from 'sequelize';
import { idBound } from '../../base/ids.ts';
import { deleteInBatches } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { titleStep } from './modelCall.ts';

const turnsPerBatch = 200;
const positionName = 'model_calls';

/**
 * Deletes the working data of turns created before `before`: their tool calls, their clients' device contexts, their
 * read receipts and the hashes of their requests. Their model calls are summed up in one row a turn. Turns are left
 * alone if they have not ended, or if an older turn has not ended. Ids begin with their time, so each delete reads only
 * the beginning of its table.
 */
export async function purgeOldTurns(database: Database, before: Date, onBatch: () => void): Promise<number> {
  const bound = await endedBefore(database, idBound('turn', before));
  let removed = 0;
  for (const table of ['tool_calls', 'turn_contexts', 'turn_receipts', 'completion_requests']) {
    removed += await deleteInBatches(database, `DELETE FROM ${table} WHERE turn_id < ? LIMIT ?`, [bound], onBatch);
  }
  return removed + (await foldModelCalls(database, bound, onBatch));
}

/** The bound, or the oldest unended turn if that one is older. */
async function endedBefore({ pool }: Database, bound: string): Promise<string> {
  const rows = await select(pool, 'SELECT MIN(id) AS id FROM turns WHERE terminal = 0 AND id < ?', [bound]);
  return (rows[0]?.id as string | null | undefined) ?? bound;
}

async function foldModelCalls(database: Database, bound: string, onBatch: () => void): Promise<number> {
  for (let removed = 0; ; onBatch()) {
    const folded = await transaction(database, async (tx) => {
      await execute(tx, 'INSERT IGNORE INTO purge_positions (name, position) VALUES (?, ?)', [positionName, '']);
      const [{ position } = { position: '' }] = await select<{ position: string }>(
        tx,
        'SELECT position FROM purge_positions WHERE name = ? FOR UPDATE',
        [positionName],
      );
      const turns = await select<{ id: string }>(
        tx,
        'SELECT DISTINCT turn_id AS id FROM model_calls WHERE turn_id > ? AND turn_id < ? ORDER BY turn_id LIMIT ?',
        [position, bound, turnsPerBatch],
      );
      const last = turns.at(-1);
      if (last === undefined) return undefined;
      await execute(tx, 'UPDATE purge_positions SET position = ? WHERE name = ?', [last.id, positionName]);
      return foldTurns(
        tx,
        turns.map(({ id }) => id),
      );
    });
    if (folded === undefined) return removed;
    removed += folded;
  }
}

interface Sum {
  turnId: string;
  firstStep: number;
  calls: number;
  input: number;
  cachedInput: number;
  output: number;
  reasoning: number;
}

/**
 * Keeps each turn's first call, with the sum of all its calls. The call that named the thread does not count and is
 * deleted.
 */
async function foldTurns(tx: Transaction, turnIds: string[]): Promise<number> {
  const titles = await execute(tx, 'DELETE FROM model_calls WHERE turn_id IN (?) AND step = ?', [turnIds, titleStep]);
  const sums = await select<Sum>(
    tx,
    `SELECT turn_id, MIN(step) AS firstStep, COUNT(*) AS calls, SUM(input_tokens) AS input,
      SUM(cached_input_tokens) AS cachedInput, SUM(output_tokens) AS output, SUM(reasoning_tokens) AS reasoning
    FROM model_calls WHERE turn_id IN (?) GROUP BY turn_id HAVING COUNT(*) > 1`,
    [turnIds],
  );
  let removed = titles.affectedRows;
  for (const { turnId, firstStep, calls, input, cachedInput, output, reasoning } of sums) {
    await execute(tx, 'DELETE FROM model_calls WHERE turn_id = ? AND step <> ?', [turnId, firstStep]);
    await execute(
      tx,
      `UPDATE model_calls SET input_tokens = ?, cached_input_tokens = ?, output_tokens = ?, reasoning_tokens = ?
        WHERE turn_id = ? AND step = ?`,
      [input, cachedInput, output, reasoning, turnId, firstStep],
    );
    removed += calls - 1;
  }
  return removed;
}
