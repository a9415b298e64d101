import type { Database } from '../database.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../oldestFirst.ts';
import type { Turn } from './turn.ts';

/** What the sweeper needs to know about a turn. */
export type UnendedTurn = Waiting & Pick<Turn, 'spaceId' | 'threadId' | 'userId' | 'modelId' | 'stopRequestedAt'>;

/** Active turns that have not ended: each should have a workflow. */
export function unendedTurns(
  database: Pick<Database, 'pool'>,
  status: 'running' | 'waiting',
  page: OldestFirst<UnendedTurn>,
): Promise<UnendedTurn[]> {
  return oldestFirst(
    database,
    {
      table: 'turns',
      columns: [
        'space_id AS spaceId',
        'thread_id AS threadId',
        'user_id AS userId',
        'model_id AS modelId',
        'stop_requested_at AS stopRequestedAt',
      ],
      where: 'terminal = 0 AND status = ?',
      values: [status],
      time: 'created_at',
    },
    page,
  );
}
