import { type Database, transaction } from '../database.ts';
import { execute, select } from '../sql.ts';
import { release, reserve } from './holds.ts';
import { ceilingOf, outputTokensFor, type Prices } from './prices.ts';

/** A model call that wants credits set aside. */
export interface CallRequest {
  id: string;
  spaceId: string;
  userId: string;
  turnId: string | null;
  modelId: string;
  prices: Prices;
  modelMaxOutputTokens: number;
  /** A rough count; what is really used is booked afterwards. */
  inputTokens: number;
  enforced: boolean;
}

/** An answer that cannot be this long is not worth asking for. */
const shortestAnswerTokens = 16;

/**
 * Sets aside what a call can cost, and says how long its answer may be where that is less than the model could say. Where nobody is refused
 * and the space has no caps, nothing is set aside. Throws 402.
 */
export async function holdForCall(database: Database, call: CallRequest): Promise<{ maxOutputTokens?: number }> {
  const { prices, inputTokens, modelMaxOutputTokens: longest, ...rest } = call;
  if (!call.enforced && !(await hasCaps(database, call.spaceId))) return {};
  const atMost = ceilingOf(prices, inputTokens, longest);
  const atLeast = ceilingOf(prices, inputTokens, Math.min(shortestAnswerTokens, longest));
  const amount = await transaction(database, (tx) => reserve(tx, { ...rest, inputTokens, atLeast, atMost }));
  return amount < atMost ? { maxOutputTokens: Math.max(1, outputTokensFor(prices, inputTokens, amount)) } : {};
}

async function hasCaps(database: Database, spaceId: string): Promise<boolean> {
  const [rows] = await database.pool.query(
    'SELECT 1 FROM billing_settings WHERE space_id = ? AND COALESCE(cap_per_turn, cap_per_day, cap_per_member_per_day) IS NOT NULL',
    [spaceId],
  );
  return (rows as unknown[]).length > 0;
}

/** Gives what was set aside for a message to the turn that it became: its first call finds it. */
export async function moveHold(database: Database, from: string, turnId: string): Promise<void> {
  await transaction(database, async (tx) => {
    const [taken] = await select(tx, 'SELECT 1 FROM billing_holds WHERE id = ?', [`${turnId}:0`]);
    if (taken !== undefined) return;
    await execute(tx, "UPDATE billing_holds SET id = ?, turn_id = ? WHERE id = ? AND status = 'open'", [
      `${turnId}:0`,
      turnId,
      from,
    ]);
  });
}

export async function dropHold(database: Database, spaceId: string, id: string): Promise<void> {
  await transaction(database, (tx) => release(tx, spaceId, id));
}
