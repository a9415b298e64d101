import type { Transaction } from 'sequelize';
import { incoming } from './debt.ts';
import { addGrant, burn, expireGrants, priorities } from './grants.ts';
import { type Balances, isPosted, lockBalances, post, type TransactionKind } from './ledger.ts';

/** Credits that enter or leave a space. Each source is booked once; functions return whether this call booked it. */
export interface Movement {
  spaceId: string;
  sourceId: string;
  micro: number;
  userId?: string | null;
  detail?: string;
}

export async function grant(
  tx: Transaction,
  movement: Movement & { expiresAt?: Date | null; priority?: number },
): Promise<boolean> {
  return comeIn(tx, movement, { kind: 'grant', account: 'granted', priority: movement.priority ?? priorities.granted });
}

export async function topUp(tx: Transaction, movement: Movement): Promise<boolean> {
  return comeIn(tx, movement, { kind: 'topUp', account: 'paid', priority: priorities.paid });
}

async function comeIn(
  tx: Transaction,
  movement: Movement & { expiresAt?: Date | null },
  to: { kind: TransactionKind; account: 'granted' | 'paid'; priority: number },
): Promise<boolean> {
  const { spaceId, sourceId, micro, userId = null, detail = null, expiresAt = null } = movement;
  const balances = await lockBalances(tx, spaceId);
  if (micro === 0 || (await isPosted(tx, sourceId))) return false;
  const { debtPaid, lines } = incoming(balances, micro);
  if (micro > debtPaid) {
    await addGrant(tx, balances, { sourceId, micro: micro - debtPaid, priority: to.priority, expiresAt });
  }
  await post(tx, { sourceId, kind: to.kind, userId, detail }, [
    { of: balances, account: to.account, change: micro },
    ...lines,
  ]);
  return true;
}

/**
 * Books usage that is no model call: a computer's minute, a day's storage. It never refuses: an uncovered part becomes
 * debt, or is unbilled.
 */
export async function charge(
  tx: Transaction,
  movement: Movement & { kind: 'computer' | 'storage'; enforced: boolean },
): Promise<boolean> {
  const { spaceId, sourceId, micro, kind, userId = null, detail = null, enforced } = movement;
  const balances = await lockBalances(tx, spaceId);
  if (micro === 0 || (await isPosted(tx, sourceId))) return false;
  await expireGrants(tx, balances);
  const taken = Math.min(micro, balances.available);
  await burn(tx, balances, taken);
  await post(tx, { sourceId, kind, userId, detail }, [
    { of: balances, account: 'available', change: -taken },
    { of: balances, account: 'spent', change: micro },
    { of: balances, account: enforced ? 'debt' : 'unbilled', change: micro - taken },
  ]);
  return true;
}

/**
 * Moves credits between two spaces, for the operator. False if this source was booked before, or the balance is too
 * low.
 */
export async function transfer(
  tx: Transaction,
  { from, to, micro, sourceId }: { from: string; to: string; micro: number; sourceId: string },
): Promise<boolean> {
  if (from === to || micro <= 0) return false;
  // Always locks in the same order, so that two opposite transfers cannot deadlock.
  const locked = new Map<string, Balances>();
  for (const spaceId of [from, to].sort()) locked.set(spaceId, await lockBalances(tx, spaceId));
  const [giver, taker] = [locked.get(from), locked.get(to)];
  if (giver === undefined || taker === undefined || (await isPosted(tx, sourceId))) return false;
  await expireGrants(tx, giver);
  if (giver.available < micro) return false;
  const { debtPaid, lines } = incoming(taker, micro);
  await burn(tx, giver, micro);
  if (micro > debtPaid) await addGrant(tx, taker, { sourceId, micro: micro - debtPaid, priority: priorities.paid });
  await post(tx, { sourceId, kind: 'transfer' }, [
    { of: giver, account: 'available', change: -micro },
    { of: giver, account: 'sent', change: micro },
    { of: taker, account: 'received', change: micro },
    ...lines,
  ]);
  return true;
}
