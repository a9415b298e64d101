import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { type CallKind, noteBaseTokens, sizeOfCalls } from './callSizes.ts';
import { reserve } from './holds.ts';
import { ceilingOf, outputTokensFor, type Prices } from './prices.ts';

/** A model call that wants credits set aside. */
export interface CallRequest {
  id: string;
  spaceId: string;
  userId: string;
  turnId: string | null;
  modelId: string;
  kind: CallKind['kind'];
  prices: Prices;
  /** How long the answer may become: by its model, and by the space's settings. */
  maxOutputTokens: number;
  /** A rough count; actual usage is booked afterwards. */
  inputTokens: number;
  /** What of it is the system prompt and the tools, where that is known. */
  baseTokens?: number;
  enforced: boolean;
}

/** What a call has, and may have. */
export interface Allowance {
  /** What is set aside, in micro-credits. */
  held: number;
  /** The most that the call can cost, by its own limits and its space's. */
  atMost: number;
  /** The answer's limit, where it is below the model's, and its reason. */
  maxOutputTokens?: number;
  boundBy?: 'credits' | 'cap';
}

/** An answer that must be shorter than this is not worth asking for. */
const shortestAnswerTokens = 16;
/** The expected length of an answer before any has been seen: a share of the longest, within bounds. */
const expectedShare = 0.25;
const expectedTokens = { least: 64, most: 1_024 };
/** A margin on top of the average cost of answers. */
const margin = 1.2;
/** The system prompt and the tools, before any prompt has been seen. */
const assumedBaseTokens = 500;

/**
 * Sets aside what such a call is likely to cost: more is asked for when its answer grows. Returns the answer's limit
 * where it is below the model's. Where credits are not enforced and the space has no caps, nothing is set aside:
 * undefined. Throws 402.
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
  // With the balances locked, so that no two calls of a space write the row at once.
  if (baseTokens !== undefined) await noteBaseTokens(tx, call, baseTokens, size);
  if (boundBy === undefined) return { held: amount, atMost };
  const maxOutputTokens = Math.max(1, outputTokensFor(prices, inputTokens, ceiling));
  return { held: amount, atMost: ceiling, maxOutputTokens, boundBy };
}

/**
 * Sets more aside for a call whose answer has come to cost `micro` so far, and returns what it has now. Throws 402 when
 * that is not covered any more.
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
 * Sets credits aside for a new turn's first call, in the transaction that makes the turn: a message accepted before
 * needs nothing more, and a refused message is not stored. The size of its prompt is estimated from similar prompts.
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

/** A turn's first call finds its message's hold. */
export function firstHoldId(turnId: string): string {
  return `${turnId}:0`;
}

/** What the thread's last prompt and its answer were: the next prompt begins with them. */
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
