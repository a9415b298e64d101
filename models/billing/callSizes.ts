import type { Transaction } from 'sequelize';
import { execute, select } from '../sql.ts';

/** What a space's calls of a model are like: by it a call's hold is sized before anything of the call is known. */
export interface CallSize {
  /** What a prompt has beside its messages: the system prompt, and the tools that are offered. */
  baseTokens: number;
  /** What an answer costs, in micro-credits; null before the first. */
  outputMicro: number | null;
}

/**
 * Calls of one kind are alike: those of a mode are offered the same tools, and what is asked beside a turn (`aside`) is
 * short.
 */
export interface CallKind {
  spaceId: string;
  modelId: string;
  kind: 'ask' | 'work' | 'aside';
}

/** The row by which a space's first prompt is counted. How long answers are, each space learns by itself. */
const anySpace = '';
/** The share that the newest answer has in what is expected of the next. */
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

/** Notes what a prompt has beside its messages; seldom a write, since that seldom changes. */
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
  // Once: spaces must not all wait for one row.
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
