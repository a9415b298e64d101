import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

export interface OpenHold {
  id: string;
  spaceId: string;
}

export type StaleHold = Waiting & Pick<OpenHold, 'spaceId'>;
export type ExpiredGrant = StaleHold;

export async function openHoldsOf(database: Database, turnId: string): Promise<OpenHold[]> {
  return read(database, "SELECT id, space_id AS spaceId FROM billing_holds WHERE turn_id = ? AND status = 'open'", [
    turnId,
  ]);
}

/** Open holds of ended turns, and of messages that never became a turn. */
export const staleHolds = waitingIn<StaleHold>({
  table: 'billing_holds',
  columns: ['space_id AS spaceId'],
  where: `status = 'open'
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = billing_holds.turn_id AND t.terminal = 0)`,
  time: 'created_at',
});

/** Expired grants with credits left. */
export const expiredGrants = waitingIn<ExpiredGrant>({
  table: 'billing_grants',
  columns: ['space_id AS spaceId'],
  where: 'remaining > 0 AND expires_at IS NOT NULL',
  time: 'expires_at',
});

async function read<Row>(database: Database, sql: string, values: unknown[]): Promise<Row[]> {
  const [rows] = await database.pool.query<RowDataPacket[]>(sql, values);
  return rows as unknown as Row[];
}
