import type { Database } from '../database/database.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';
import type { Operation } from './operation.ts';

/** What is to be known of an operation to look after it. */
export type UnendedOperation = Waiting &
  Pick<Operation, 'kind' | 'spaceId' | 'userId' | 'subjectId' | 'cancelRequestedAt'>;

export function unendedOperations(
  database: Pick<Database, 'pool'>,
  page: OldestFirst<UnendedOperation>,
): Promise<UnendedOperation[]> {
  return oldestFirst(
    database,
    {
      table: 'operations',
      index: 'operations_sweep',
      columns: [
        'kind',
        'space_id AS spaceId',
        'user_id AS userId',
        'subject_id AS subjectId',
        'cancel_requested_at AS cancelRequestedAt',
      ],
      where: "status = 'running'",
      time: 'created_at',
    },
    page,
  );
}
