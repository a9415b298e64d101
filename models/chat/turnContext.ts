import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import type { Turn } from './turn.ts';

/** The options of an OpenAI API request that apply to its turn, beside its messages. */
export interface CompletionRequest {
  /** The request's system and developer messages. */
  instructions?: string;
  /** The model is offered no tools but the client's own. */
  ownToolsOnly?: true;
  /** How the turn's first step chooses among the client's own tools: none, any, or the one with this name. */
  toolChoice?: 'none' | 'required' | { name: string };
  maxOutputTokens?: number;
  /** The settings of its model calls: `CallSettings` in integrations/chat/modelCall.ts. */
  settings?: Record<string, unknown>;
}

/** Whether a step offers the client's own tool of this name. Without `step`, whether a later step does. */
export function offersOwn({ toolChoice }: CompletionRequest, name: string, step: number | undefined): boolean {
  if (toolChoice === 'none') return false;
  return step !== 0 || typeof toolChoice !== 'object' || toolChoice.name === name;
}

/** The device contexts that clients sent with the messages of these turns, by turn. */
export async function readTurnContexts(
  database: Pick<Database, 'pool'>,
  turnIds: readonly string[],
): Promise<Map<string, Record<string, unknown>>> {
  if (turnIds.length === 0) return new Map();
  const sql = 'SELECT turn_id, context FROM turn_contexts WHERE turn_id IN (?)';
  const rows = await select<{ turnId: string; context: string }>(database.pool, sql, [turnIds]);
  return new Map(rows.map((row) => [row.turnId, JSON.parse(row.context)] as const));
}

/** The context that the client sent with one turn's message. */
export async function contextOf(
  database: Pick<Database, 'pool'>,
  turn: Pick<Turn, 'id' | 'context'>,
): Promise<Record<string, unknown> | undefined> {
  if (turn.context !== undefined) return turn.context ?? undefined;
  return (await readTurnContexts(database, [turn.id])).get(turn.id);
}

/** Reads the context into `turn.context` for later callers. It never changes. */
export async function loadContext(database: Pick<Database, 'pool'>, turn: Pick<Turn, 'id' | 'context'>): Promise<void> {
  turn.context = (await contextOf(database, turn)) ?? null;
}

/** The options of the turn's OpenAI API request; undefined for other turns. */
export async function completionOf(
  database: Pick<Database, 'pool'>,
  turn: Pick<Turn, 'id' | 'context'>,
): Promise<CompletionRequest | undefined> {
  return (await contextOf(database, turn))?.completion as CompletionRequest | undefined;
}
