import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { execute, insert, select } from '../database/sql.ts';
import { countUse, roomUnderCaps, today } from './caps.ts';
import { coverDebt } from './debt.ts';
import { burn, expireGrants, giveBack, type Part } from './grants.ts';
import { type Balances, isPosted, lockBalances, post } from './ledger.ts';

/** Credits held for one model call. The id is the call's: `<turn>:<step>`. */
export interface Hold {
  id: string;
  spaceId: string;
  userId: string;
  turnId: string | null;
  modelId: string;
  /** The held amount. It grows with the answer. */
  amount: number;
  /** The part that is reserved in the ledger: all of it if credits are enforced. */
  held: number;
  parts: Part[];
  inputTokens: number;
  /** Counts changes. Each is a ledger transaction with its own source. */
  revision: number;
  status: 'open' | 'settled' | 'released';
  /** The day (UTC) whose caps the hold counts to. */
  day: string;
}

export interface HoldRequest {
  id: string;
  spaceId: string;
  userId: string;
  turnId: string | null;
  modelId: string;
  inputTokens: number;
  /** Below this amount the call is not worth starting. */
  atLeast: number;
  /** The amount to hold if there is enough. Default: all that the call can cost. */
  wanted?: number;
  atMost: number;
  /** Whether to refuse calls that the credits do not cover. Otherwise only the space's caps apply. */
  enforced: boolean;
  /** Change only an open hold: a call that has ended must not hold more. */
  ifOpen?: boolean;
}

/** The held amount, and how much more would be available. */
export interface Reserved {
  amount: number;
  /** What the credits and caps leave for the call now, at most `atMost`. */
  ceiling: number;
  /** What limits `ceiling`. Undefined: the call's own `atMost`. */
  boundBy?: 'credits' | 'cap';
}

const fields = `id, space_id, user_id, turn_id, model_id, amount, held, parts, input_tokens, revision, status,
  DATE_FORMAT(day, '%Y-%m-%d') AS day`;

export async function findHold(tx: Transaction, id: string): Promise<Hold | undefined> {
  const [row] = await select<Omit<Hold, 'parts'> & { parts: string }>(
    tx,
    `SELECT ${fields} FROM billing_holds WHERE id = ?`,
    [id],
  );
  return row && { ...row, parts: JSON.parse(row.parts) as Part[] };
}

/**
 * Holds credits between `atLeast` and `wanted`, and returns how many. Adjusts an existing hold to the new amount: a
 * retried call holds once, and a growing answer gets more. Throws 402 if the space or a cap leaves too little.
 */
export async function reserve(tx: Transaction, request: HoldRequest): Promise<Reserved> {
  const balances = await lockBalances(tx, request.spaceId);
  await expireGrants(tx, balances);
  const known = await findHold(tx, request.id);
  if (known?.status === 'settled' || (request.ifOpen === true && known?.status !== 'open')) {
    return { amount: known?.amount ?? 0, ceiling: request.atMost };
  }
  const before = known?.status === 'open' ? known : undefined;
  const pool = balances.available + (before?.held ?? 0);
  if (request.enforced && (pool === 0 || pool < request.atLeast)) throw creditsExhausted(request.spaceId);
  const counted = before && { day: before.day, micro: before.amount };
  const room = await roomUnderCaps(tx, request, counted);
  if (room < Math.max(request.atLeast, 1)) throw capReached();
  const covered = request.enforced ? pool : Number.POSITIVE_INFINITY;
  const ceiling = Math.min(request.atMost, room, covered);
  const amount = Math.min(request.wanted ?? request.atMost, ceiling);
  const held = Math.min(amount, pool);
  const revision = (known?.revision ?? 0) + 1;
  const parts = await shift(tx, balances, before, held, request, revision);
  const row = {
    spaceId: request.spaceId,
    userId: request.userId,
    turnId: request.turnId,
    modelId: request.modelId,
    amount,
    held,
    parts,
    inputTokens: request.inputTokens,
    revision,
    status: 'open',
    day: today(),
  };
  if (known === undefined) await insert(tx, 'billing_holds', { id: request.id, ...row, createdAt: new Date() });
  else await execute(tx, 'UPDATE billing_holds SET ? WHERE id = ?', [row, request.id]);
  const { day } = row;
  const isOfDay = counted?.day === day;
  // A call that began before midnight moves completely to the new day, whose caps were checked.
  if (counted !== undefined && !isOfDay) await countUse(tx, request, { ...counted, micro: -counted.micro });
  await countUse(tx, request, { day, micro: isOfDay ? amount - counted.micro : amount });
  if (ceiling === request.atMost) return { amount, ceiling };
  return { amount, ceiling, boundBy: ceiling === room ? 'cap' : 'credits' };
}

/** Moves the ledger from the hold's old amount to the new one. */
async function shift(
  tx: Transaction,
  balances: Balances,
  before: Hold | undefined,
  held: number,
  { id, userId, turnId }: HoldRequest,
  revision: number,
): Promise<Part[]> {
  const change = held - (before?.held ?? 0);
  if (change === 0) return before?.parts ?? [];
  const parts =
    change > 0
      ? [...(before?.parts ?? []), ...(await burn(tx, balances, change))]
      : await giveBack(tx, before?.parts ?? [], -change);
  const kind = change > 0 ? 'reserve' : 'release';
  await post(tx, { sourceId: `${kind}:${id}:${revision}`, kind, userId, turnId }, [
    { of: balances, account: 'available', change: -change },
    { of: balances, account: 'reserved', change },
  ]);
  return parts;
}

export interface Settlement {
  id: string;
  spaceId: string;
  userId: string;
  /** Null for a call that belongs to no turn. */
  turnId: string | null;
  modelId: string;
  cost: number;
  enforced: boolean;
}

/**
 * Books the cost of a call once, and releases the unused part of its hold. An uncovered part becomes debt, or is
 * unbilled if credits are not enforced.
 */
export async function settle(tx: Transaction, settlement: Settlement): Promise<void> {
  const { id, spaceId, userId, turnId, modelId, cost, enforced } = settlement;
  const balances = await lockBalances(tx, spaceId);
  const known = await findHold(tx, id);
  if (known?.status === 'settled' || (await isPosted(tx, `call:${id}`))) return;
  const hold = known?.status === 'open' ? known : undefined;
  const held = hold?.held ?? 0;
  const fromHold = Math.min(cost, held);
  await giveBack(tx, hold?.parts ?? [], held - fromHold);
  const rest = await takeRest(tx, balances, cost - fromHold);
  const uncovered = cost - fromHold - rest;
  if (cost > 0 || held > 0) {
    const posting =
      cost > 0
        ? ({ sourceId: `call:${id}`, kind: 'call' } as const)
        : ({ sourceId: `release:${id}:${(hold?.revision ?? 0) + 1}`, kind: 'release' } as const);
    await post(tx, { ...posting, userId, turnId, detail: modelId }, [
      { of: balances, account: 'reserved', change: -held },
      { of: balances, account: 'available', change: held - fromHold - rest },
      { of: balances, account: 'spent', change: cost },
      { of: balances, account: enforced ? 'debt' : 'unbilled', change: uncovered },
    ]);
    await coverDebt(tx, balances);
  }
  const day = known?.day ?? today();
  await countUse(tx, { spaceId, userId: known?.userId ?? userId }, { day, micro: cost - (hold?.amount ?? 0) });
  const end = { status: 'settled', cost, held: 0, parts: '[]', endedAt: new Date() };
  if (known !== undefined) await execute(tx, 'UPDATE billing_holds SET ? WHERE id = ?', [end, id]);
  else {
    const row = {
      spaceId,
      userId,
      turnId,
      modelId,
      amount: cost,
      inputTokens: 0,
    };
    await insert(tx, 'billing_holds', { id, ...row, revision: 1, day, createdAt: new Date(), ...end });
  }
}

async function takeRest(tx: Transaction, balances: Balances, wanted: number): Promise<number> {
  if (wanted === 0) return 0;
  await expireGrants(tx, balances);
  const taken = Math.min(wanted, balances.available);
  await burn(tx, balances, taken);
  return taken;
}

/** Releases the hold of a call that came to nothing. Does nothing if the hold has ended. */
export async function release(tx: Transaction, spaceId: string, id: string): Promise<boolean> {
  const balances = await lockBalances(tx, spaceId);
  const hold = await findHold(tx, id);
  if (hold?.status !== 'open') return false;
  const revision = hold.revision + 1;
  if (hold.held > 0) {
    await giveBack(tx, hold.parts, hold.held);
    await post(tx, { sourceId: `release:${id}:${revision}`, kind: 'release', turnId: hold.turnId }, [
      { of: balances, account: 'reserved', change: -hold.held },
      { of: balances, account: 'available', change: hold.held },
    ]);
    await coverDebt(tx, balances);
  }
  await countUse(tx, hold, { day: hold.day, micro: -hold.amount });
  await execute(tx, 'UPDATE billing_holds SET ? WHERE id = ?', [
    { status: 'released', held: 0, cost: 0, parts: '[]', revision, endedAt: new Date() },
    id,
  ]);
  return true;
}

/** A 402 with a link to buy more. */
export function creditsExhausted(spaceId: string): DomainError {
  const path = `/api/billing/${encodeURIComponent(spaceId)}/top-up`;
  const message = `The space has no credits left for this. Buy some with POST ${path}.`;
  return new DomainError('paymentRequired', 'CREDITS_EXHAUSTED', message, { link: { rel: 'payment', path } });
}

function capReached(): DomainError {
  return new DomainError(
    'paymentRequired',
    'SPENDING_CAP_REACHED',
    'A spending cap of the space is reached: of this turn, of today, or of this member. Its owner can raise it.',
  );
}
