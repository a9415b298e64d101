import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { type CallKind, noteBaseTokens, sizeOfCalls } from './callSizes.ts';
import { reserve } from './holds.ts';
import { ceilingOf, outputTokensFor, type Prices } from './prices.ts';

/** A model call that needs a hold. */
export interface CallRequest {
  id: string;
  spaceId: string;
  userId: string;
  turnId: string | null;
  modelId: string;
  kind: CallKind['kind'];
  prices: Prices;
  /** Limit of the answer, by the model and the space's settings. */
  maxOutputTokens: number;
  /** A rough count. The actual usage is booked afterwards. */
  inputTokens: number;
  /** The part for the system prompt and the tools, if known. */
  baseTokens?: number;
  enforced: boolean;
}

/** The credits that a call has, and may get. */
export interface Allowance {
  /** The held amount, in micro-credits. */
  held: number;
  /** The most that the call can cost, by its own limits and its space's. */
  atMost: number;
  /** The answer's limit if it is below the model's, and the reason in `boundBy`. */
  maxOutputTokens?: number;
  boundBy?: 'credits' | 'cap';
}

/** A shorter answer is not worth a call. */
const shortestAnswerTokens = 16;
/** The expected length before any answer was seen: a share of the longest, within bounds. */
const expectedShare = 0.25;
const expectedTokens = { least: 64, most: 1_024 };
/** Factor on the average cost of answers. */
const margin = 1.2;
/** Tokens for the system prompt and the tools, before any prompt was seen. */
const assumedBaseTokens = 500;

/**
 * Holds what a call is likely to cost; a longer answer asks for more later. Returns the answer's limit if it is below
 * the model's. Undefined if credits are not enforced and the space has no caps: nothing is held then. Throws 402.
 */
export async function holdForCall(database: Database, call: CallRequest): Promise<Allowance | undefined> {
  return transaction(database, (tx) => holdIn(tx, call));
}

async function holdIn(tx: Transaction, call: CallRequest): Promise<Allowance | undefined> {
  const { prices, inputTokens, maxOutputTokens: longest, baseTokens, kind, ...rest } = call;
  if (!call.enforced && !(await hasCaps(tx, call.spaceId))) return undefined;
  const size = await sizeOfCalls(tx, call);
  const atMost = ceilingOf(prices, inputTokens, longest);
  const atLeast = ceilingOf(prices, inputTokens, Math.min(shortestAnswerTokens, longest));
  const { least, most } = expectedTokens;
  const unseen = Math.ceil(Math.min(Math.max(longest * expectedShare, least), most) * prices.output);
  const output = size?.outputMicro == null ? unseen : Math.ceil(size.outputMicro * margin);
  const wanted = Math.min(atMost, Math.max(atLeast, ceilingOf(prices, inputTokens, 0) + output));
  const { amount, ceiling, boundBy } = await reserve(tx, { ...rest, inputTokens, atLeast, wanted, atMost });
  // The balances are locked, so two calls of a space never write this row at once.
  if (baseTokens !== undefined) await noteBaseTokens(tx, call, baseTokens, size);
  if (boundBy === undefined) return { held: amount, atMost };
  const maxOutputTokens = Math.max(1, outputTokensFor(prices, inputTokens, ceiling));
  return { held: amount, atMost: ceiling, maxOutputTokens, boundBy };
}

/**
 * Increases the hold of a call whose answer costs `micro` so far, and returns the new amount. Throws 402 if that is no
 * longer covered.
 */
export async function growHold(
  database: Database,
  { prices: _, maxOutputTokens: __, baseTokens: ___, kind: ____, ...call }: CallRequest,
  amounts: { micro: number; wanted: number; atMost: number },
): Promise<number> {
  const { micro, ...rest } = amounts;
  const request = { ...call, ...rest, atLeast: Math.min(micro, rest.atMost), ifOpen: true };
  return (await transaction(database, (tx) => reserve(tx, request))).amount;
}

/**
 * Holds credits for a new turn's first call, in the transaction that makes the turn. An accepted message has its
 * credits, and a refused message is not stored. The size of its prompt is estimated from earlier prompts.
 */
export async function holdForTurn(
  tx: Transaction,
  call: Omit<CallRequest, 'id' | 'turnId' | 'inputTokens'> & {
    turn: { id: string; threadId: string; ordinal: number };
    messageTokens: number;
    contextWindowTokens: number;
  },
): Promise<void> {
  const { turn, messageTokens, contextWindowTokens, ...rest } = call;
  const before = (await promptOfThread(tx, turn)) ?? (await sizeOfCalls(tx, call))?.baseTokens ?? assumedBaseTokens;
  const inputTokens = Math.min(before + messageTokens, contextWindowTokens);
  await holdIn(tx, { ...rest, id: firstHoldId(turn.id), turnId: turn.id, inputTokens });
}

/** The id of a message's hold. The turn's first call uses the same id. */
function firstHoldId(turnId: string): string {
  return `${turnId}:0`;
}

/** Tokens of the thread's last prompt and its answer. The next prompt begins with them. */
async function promptOfThread(
  tx: Transaction,
  { threadId, ordinal }: { threadId: string; ordinal: number },
): Promise<number | undefined> {
  const [last] = await select<{ tokens: number }>(
    tx,
    `SELECT c.input_tokens + c.output_tokens AS tokens FROM turns t JOIN model_calls c ON c.turn_id = t.id
      WHERE t.thread_id = ? AND t.ordinal < ? AND c.status = 'completed' AND c.step < 1000000
      ORDER BY t.ordinal DESC, c.step DESC LIMIT 1`,
    [threadId, ordinal],
  );
  return last && Number(last.tokens);
}

async function hasCaps(tx: Transaction, spaceId: string): Promise<boolean> {
  const rows = await select(
    tx,
    'SELECT 1 FROM billing_settings WHERE space_id = ? AND COALESCE(cap_per_turn, cap_per_day, cap_per_member_per_day) IS NOT NULL',
    [spaceId],
  );
  return rows.length > 0;
}
