import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';
import type { Turn } from './turn.ts';

/** The columns of a turn that the sweep needs. */
export type UnendedTurn = Waiting & Pick<Turn, 'spaceId' | 'threadId' | 'userId' | 'modelId' | 'stopRequestedAt'>;

/** Active turns that have not ended. Each should have a workflow. */
export function unendedTurns(
  database: Pick<Database, 'pool'>,
  status: 'running' | 'waiting',
  page: OldestFirst<UnendedTurn>,
): Promise<UnendedTurn[]> {
  return oldestFirst(
    database,
    {
      table: 'turns',
      columns: ['space_id', 'thread_id', 'user_id', 'model_id', 'stop_requested_at'],
      where: 'terminal = 0 AND status = ?',
      values: [status],
      time: 'created_at',
    },
    page,
  );
}

const unended = ['queued', 'running', 'waiting'];

/** How many turns have not ended, by status. */
export async function countUnendedTurns({ pool }: Pick<Database, 'pool'>): Promise<Map<string, number>> {
  const sql = 'SELECT status, COUNT(*) AS turns FROM turns WHERE terminal = 0 AND status IN (?) GROUP BY status';
  const rows = await select(pool, sql, [unended]);
  const counts = new Map(unended.map((status) => [status, 0]));
  for (const { status, turns } of rows) counts.set(String(status), Number(turns));
  return counts;
}
