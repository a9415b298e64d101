import type { Transaction } from 'sequelize';
import { execute, select } from '../database/sql.ts';

/** Typical sizes of a space's calls to a model. They size a call's hold before anything about the call is known. */
export interface CallSize {
  /** The prompt without its messages: the system prompt and the offered tools. */
  baseTokens: number;
  /** The average cost of an answer in micro-credits. Null before the first answer. */
  outputMicro: number | null;
}

/**
 * Calls of one kind are similar. Those of a mode are offered the same tools; calls beside a turn's steps (`aside`) are
 * short.
 */
export interface CallKind {
  spaceId: string;
  modelId: string;
  kind: 'ask' | 'work' | 'aside';
}

/** The row for spaces that have not made such a call yet. The length of answers is learned per space. */
const anySpace = '';
/** The newest answer's weight in the moving average. */
const share = 0.2;

/** The sizes of such calls, if any are known. */
export async function sizeOfCalls(
  tx: Transaction,
  { spaceId, modelId, kind }: CallKind,
): Promise<CallSize | undefined> {
  const [size] = await select<CallSize>(
    tx,
    `SELECT base_tokens, output_micro FROM billing_call_sizes
      WHERE space_id IN (?) AND model_id = ? AND kind = ? ORDER BY space_id DESC LIMIT 1`,
    [[spaceId, anySpace], modelId, kind],
  );
  return size;
}

/** Stores the size of a prompt without its messages. Rarely writes, since it rarely changes. */
export async function noteBaseTokens(
  tx: Transaction,
  { spaceId, modelId, kind }: CallKind,
  baseTokens: number,
  known?: CallSize,
): Promise<void> {
  if (known?.baseTokens === baseTokens) return;
  const insert = 'INSERT INTO billing_call_sizes (space_id, model_id, kind, base_tokens) VALUES (?)';
  const change = 'base_tokens = VALUES(base_tokens)';
  const row = [modelId, kind, baseTokens];
  await execute(tx, `${insert} ON DUPLICATE KEY UPDATE ${change}`, [[spaceId, ...row]]);
  // Written only at a space's first call, so that spaces do not all wait for one row.
  if (known === undefined) await execute(tx, `${insert} ON DUPLICATE KEY UPDATE ${change}`, [[anySpace, ...row]]);
}

/** Adds the cost of an answer to the moving average. */
export async function noteOutput(
  tx: Transaction,
  { spaceId, modelId, kind }: CallKind,
  outputMicro: number,
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO billing_call_sizes (space_id, model_id, kind, base_tokens, output_micro) VALUES (?) ON DUPLICATE KEY UPDATE
      output_micro = ROUND(COALESCE(output_micro * ${1 - share} + VALUES(output_micro) * ${share}, VALUES(output_micro)))`,
    [[spaceId, modelId, kind, (await sizeOfCalls(tx, { spaceId, modelId, kind }))?.baseTokens ?? 0, outputMicro]],
  );
}
