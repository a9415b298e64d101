import type { Transaction } from 'sequelize';
import { select } from '../sql.ts';
import type { HoldRequest } from './holds.ts';

/** What a space's owner allows to be spent, in micro-credits; null is no limit. Days are UTC's. */
export interface Caps {
  perTurn: number | null;
  perDay: number | null;
  perMemberPerDay: number | null;
}

// What is set aside counts as spent until it is settled. The call itself is left out: it is being decided.
const counted = "IF(status = 'open', amount, cost)";

/** How much a call may cost under the space's caps. Ask it with the balances locked, so that calls side by side add up. */
export async function roomUnderCaps(
  tx: Transaction,
  { id, spaceId, userId, turnId }: Pick<HoldRequest, 'id' | 'spaceId' | 'userId' | 'turnId'>,
): Promise<number> {
  const [caps] = await select<Caps>(
    tx,
    `SELECT cap_per_turn AS perTurn, cap_per_day AS perDay, cap_per_member_per_day AS perMemberPerDay
       FROM billing_settings WHERE space_id = ?`,
    [spaceId],
  );
  if (caps === undefined) return Number.POSITIVE_INFINITY;
  const rooms: number[] = [];
  if (caps.perTurn !== null) {
    const [used] = await select<{ micro: number }>(
      tx,
      `SELECT CAST(COALESCE(SUM(${counted}), 0) AS SIGNED) AS micro FROM billing_holds WHERE turn_id = ? AND id <> ?`,
      [turnId, id],
    );
    rooms.push(caps.perTurn - (used?.micro ?? 0));
  }
  if (caps.perDay !== null || caps.perMemberPerDay !== null) {
    const [used] = await select<{ micro: number; ofMember: number }>(
      tx,
      `SELECT CAST(COALESCE(SUM(${counted}), 0) AS SIGNED) AS micro,
              CAST(COALESCE(SUM(IF(user_id = ?, ${counted}, 0)), 0) AS SIGNED) AS ofMember
         FROM billing_holds WHERE space_id = ? AND day = ? AND id <> ?`,
      [userId, spaceId, new Date().toISOString().slice(0, 10), id],
    );
    if (caps.perDay !== null) rooms.push(caps.perDay - (used?.micro ?? 0));
    if (caps.perMemberPerDay !== null) rooms.push(caps.perMemberPerDay - (used?.ofMember ?? 0));
  }
  return Math.max(0, Math.min(Number.POSITIVE_INFINITY, ...rooms));
}
