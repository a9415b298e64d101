import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';

/** A hold, and its space. */
export interface OpenHold {
  id: string;
  spaceId: string;
}

export type StaleHold = Waiting & Pick<OpenHold, 'spaceId'>;
export type ExpiredGrant = StaleHold;

const ofSpace = ['space_id AS spaceId'];

/** A turn's open holds. */
export async function openHoldsOf(database: Database, turnId: string): Promise<OpenHold[]> {
  return read(database, "SELECT id, space_id AS spaceId FROM billing_holds WHERE turn_id = ? AND status = 'open'", [
    turnId,
  ]);
}

/** Open holds of turns that have ended, or of messages that never became a turn. */
export function staleHolds(database: Database, page: OldestFirst<StaleHold>): Promise<StaleHold[]> {
  const isRunning = 'SELECT 1 FROM turns t WHERE t.id = billing_holds.turn_id AND t.terminal = 0';
  const where = `status = 'open' AND NOT EXISTS (${isRunning})`;
  return oldestFirst(database, { table: 'billing_holds', columns: ofSpace, where, time: 'created_at' }, page);
}

/** Grants that have expired by `before`, with credits left. */
export function expiredGrants(database: Database, page: OldestFirst<ExpiredGrant>): Promise<ExpiredGrant[]> {
  const where = 'remaining > 0 AND expires_at IS NOT NULL';
  return oldestFirst(database, { table: 'billing_grants', columns: ofSpace, where, time: 'expires_at' }, page);
}

async function read<Row>(database: Database, sql: string, values: unknown[]): Promise<Row[]> {
  const [rows] = await database.pool.query<RowDataPacket[]>(sql, values);
  return rows as unknown as Row[];
}
