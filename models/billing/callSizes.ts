import type { Transaction } from 'sequelize';
import { execute, select } from '../database/sql.ts';

/** Typical sizes of a space's calls to a model, for sizing a call's hold before anything about the call is known. */
export interface CallSize {
  /** The prompt besides its messages: the system prompt, and the offered tools. */
  baseTokens: number;
  /** What an answer costs, in micro-credits; null before the first. */
  outputMicro: number | null;
}

/**
 * Calls of one kind are similar: those of a mode are offered the same tools, and calls beside a turn's steps (`aside`)
 * are short.
 */
export interface CallKind {
  spaceId: string;
  modelId: string;
  kind: 'ask' | 'work' | 'aside';
}

/** The row by which a space's first prompt is counted. The length of answers is learned per space. */
const anySpace = '';
/** The newest answer's weight in the moving average. */
const share = 0.2;

/** What is known of such calls. */
export async function sizeOfCalls(
  tx: Transaction,
  { spaceId, modelId, kind }: CallKind,
): Promise<CallSize | undefined> {
  const [size] = await select<CallSize>(
    tx,
    `SELECT base_tokens AS baseTokens, output_micro AS outputMicro FROM billing_call_sizes
      WHERE space_id IN (?) AND model_id = ? AND kind = ? ORDER BY space_id DESC LIMIT 1`,
    [[spaceId, anySpace], modelId, kind],
  );
  return size;
}

/** Stores what a prompt has besides its messages; rarely a write, since it rarely changes. */
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
  // Only once: spaces must not all wait for one row.
  if (known === undefined) await execute(tx, `${insert} ON DUPLICATE KEY UPDATE ${change}`, [[anySpace, ...row]]);
}

/** Notes what an answer has cost. */
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
