import type { Database } from '../database/database.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';
import type { Computer } from './computer.ts';

/** A computer that has, or should have, a running workflow. */
export type RestlessComputer = Waiting & Pick<Computer, 'spaceId' | 'wish'>;

export function restlessComputers(
  database: Pick<Database, 'pool'>,
  page: OldestFirst<RestlessComputer>,
): Promise<RestlessComputer[]> {
  const where = "(status IN ('starting', 'running', 'paused', 'stopping') OR wish IS NOT NULL)";
  const columns = ['space_id AS spaceId', 'wish'];
  return oldestFirst(database, { table: 'computers', columns, where, time: 'status_at' }, page);
}
