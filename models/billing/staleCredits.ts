import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database.ts';

/** A hold, and its space. */
export interface OpenHold {
  id: string;
  spaceId: string;
}

/** A turn's open holds. */
export async function openHoldsOf(database: Database, turnId: string): Promise<OpenHold[]> {
  return read(database, "SELECT id, space_id AS spaceId FROM billing_holds WHERE turn_id = ? AND status = 'open'", [
    turnId,
  ]);
}

/** Holds from before `before` of turns that have ended, or of messages that never became a turn. */
export async function findStaleHolds(database: Database, before: Date, limit: number): Promise<OpenHold[]> {
  return read(
    database,
    `SELECT h.id, h.space_id AS spaceId FROM billing_holds h LEFT JOIN turns t ON t.id = h.turn_id
      WHERE h.status = 'open' AND h.created_at < ? AND (t.id IS NULL OR t.terminal = 1) LIMIT ?`,
    [before, limit],
  );
}

/** Spaces with expired credits. */
export async function spacesWithExpiredGrants(database: Database, now: Date, limit: number): Promise<string[]> {
  const spaces = await read<{ spaceId: string }>(
    database,
    'SELECT DISTINCT space_id AS spaceId FROM billing_grants WHERE expires_at <= ? AND remaining > 0 LIMIT ?',
    [now, limit],
  );
  return spaces.map(({ spaceId }) => spaceId);
}

async function read<Row>(database: Database, sql: string, values: unknown[]): Promise<Row[]> {
  const [rows] = await database.pool.query<RowDataPacket[]>(sql, values);
  return rows as unknown as Row[];
}
