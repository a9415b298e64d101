import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';
import type { Turn } from './turn.ts';

/** What a client of OpenAI's API has asked of its turn, beside the messages. */
export interface CompletionRequest {
  /** Its system and developer messages. */
  instructions?: string;
  /** The model is offered the client's own tools only. */
  ownToolsOnly?: true;
  /** Of the turn's first step, among the client's own tools: none of them, any, or the one of this name. */
  toolChoice?: 'none' | 'required' | { name: string };
  maxOutputTokens?: number;
  /** How its model calls are made: the `CallSettings` of integrations/chat/modelCall.ts. */
  settings?: Record<string, unknown>;
}

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

/** Reads it once, for all who ask for it of this turn later: it never changes. */
export async function loadContext(database: Pick<Database, 'pool'>, turn: Pick<Turn, 'id' | 'context'>): Promise<void> {
  turn.context = (await contextOf(database, turn)) ?? null;
}

/** What the turn's client has asked of it by OpenAI's API; undefined for all other turns. */
export async function completionOf(
  database: Pick<Database, 'pool'>,
  turn: Pick<Turn, 'id' | 'context'>,
): Promise<CompletionRequest | undefined> {
  return (await contextOf(database, turn))?.completion as CompletionRequest | undefined;
}
