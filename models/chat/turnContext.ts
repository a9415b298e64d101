import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database.ts';
import type { Turn } from './turn.ts';

/** What clients have said of their devices with the messages of these turns, by turn. */
export async function readTurnContexts(
  database: Pick<Database, 'pool'>,
  turnIds: readonly string[],
): Promise<Map<string, Record<string, unknown>>> {
  if (turnIds.length === 0) return new Map();
  const [rows] = await database.pool.query<RowDataPacket[]>(
    'SELECT turn_id AS turnId, context FROM turn_contexts WHERE turn_id IN (?)',
    [turnIds],
  );
  return new Map(
    (rows as { turnId: string; context: string }[]).map((row) => [row.turnId, JSON.parse(row.context)] as const),
  );
}

/** The same of one turn. */
export async function contextOf(
  database: Pick<Database, 'pool'>,
  turn: Pick<Turn, 'id' | 'context'>,
): Promise<Record<string, unknown> | undefined> {
  if (turn.context !== undefined) return turn.context ?? undefined;
  return (await readTurnContexts(database, [turn.id])).get(turn.id);
}
