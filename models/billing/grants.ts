import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type Balances, post } from './ledger.ts';

/** Credits received at one time, and how many are left. `available` is always the sum of `remaining`. */
export interface Grant {
  id: string;
  remaining: number;
  expiresAt: Date | null;
}

/** An amount taken from a grant. */
export type Part = [grantId: string, micro: number];

/** Lower values are burnt first: granted credits before paid ones. */
export const priorities = { granted: 10, paid: 20 } as const;

// Credits are burnt by priority, then by the earliest expiry, then by age.
const burnOrder = 'ORDER BY priority, expires_at IS NULL, expires_at, id';

export interface NewGrant {
  sourceId: string;
  micro: number;
  priority: number;
  expiresAt?: Date | null;
}

/** Adds credits to be burnt. The caller posts them in the same transaction. */
export async function addGrant(tx: Transaction, balances: Balances, grant: NewGrant): Promise<void> {
  await insert(tx, 'billing_grants', {
    id: newId('grant'),
    spaceId: balances.spaceId,
    sourceId: grant.sourceId,
    priority: grant.priority,
    amount: grant.micro,
    remaining: grant.micro,
    expiresAt: grant.expiresAt ?? null,
    createdAt: new Date(),
  });
}

/**
 * Takes an amount from the grants in burn order, and returns the parts. The grants must have enough. Grants of the
 * source `firstOf` come first.
 */
export async function burn(tx: Transaction, balances: Balances, micro: number, firstOf?: string): Promise<Part[]> {
  if (micro === 0) return [];
  const grants = await select<Grant & { sourceId: string }>(
    tx,
    `SELECT id, remaining, source_id FROM billing_grants WHERE space_id = ? AND remaining > 0 ${burnOrder}`,
    [balances.spaceId],
  );
  if (firstOf !== undefined) grants.sort((a, b) => Number(b.sourceId === firstOf) - Number(a.sourceId === firstOf));
  const parts: Part[] = [];
  let missing = micro;
  for (const grant of grants) {
    const taken = Math.min(missing, grant.remaining);
    await change(tx, grant.id, -taken);
    parts.push([grant.id, taken]);
    missing -= taken;
    if (missing === 0) return parts;
  }
  throw new Error(`The grants of ${balances.spaceId} are ${missing} short of what is available.`);
}

/** Returns unused credits of a hold to their grants, the last taken first. Returns the parts that the hold keeps. */
export async function giveBack(tx: Transaction, parts: readonly Part[], micro: number): Promise<Part[]> {
  const kept: Part[] = parts.map(([id, amount]) => [id, amount]);
  let left = micro;
  for (const part of kept.toReversed()) {
    const returned = Math.min(left, part[1]);
    if (returned === 0) continue;
    await change(tx, part[0], returned);
    part[1] -= returned;
    left -= returned;
  }
  return kept.filter(([, amount]) => amount > 0);
}

/** Ends expired grants, so that they cannot be spent. */
export async function expireGrants(tx: Transaction, balances: Balances, now = new Date()): Promise<void> {
  if (balances.available === 0) return;
  const over = await select<Grant>(
    tx,
    'SELECT id, remaining FROM billing_grants WHERE space_id = ? AND remaining > 0 AND expires_at <= ?',
    [balances.spaceId, now],
  );
  for (const { id, remaining } of over) {
    await change(tx, id, -remaining);
    // Credits that a hold returns later expire separately, so the grant's id alone is not unique.
    await post(tx, { sourceId: `expiry:${id}:${newId('ledgerTransaction')}`, kind: 'expiry' }, [
      { of: balances, account: 'available', change: -remaining },
      { of: balances, account: 'expired', change: remaining },
    ]);
  }
}

async function change(tx: Transaction, id: string, by: number): Promise<void> {
  await execute(tx, 'UPDATE billing_grants SET remaining = remaining + ? WHERE id = ?', [by, id]);
}
