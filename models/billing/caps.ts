import type { Transaction } from 'sequelize';
import { deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import type { HoldRequest } from './holds.ts';

/** A space's spending caps in micro-credits. Null means no limit. Days are in UTC. */
export interface Caps {
  perTurn: number | null;
  perDay: number | null;
  perMemberPerDay: number | null;
}

// Open holds count as spent, except the hold of the call that is being decided.
const counted = "IF(status = 'open', amount, cost)";

/** Days for which daily sums are kept. Only today's is used; the others are for checks. */
export const keptDays = 7;

export function today(now = new Date()): string {
  return now.toISOString().slice(0, 10);
}

/** A call's hold that is already counted. */
export interface Counted {
  day: string;
  micro: number;
}

/**
 * How much a call may cost under the space's caps. The caller must have locked the balances, so that parallel calls add
 * up.
 */
export async function roomUnderCaps(
  tx: Transaction,
  { id, spaceId, userId, turnId }: Pick<HoldRequest, 'id' | 'spaceId' | 'userId' | 'turnId'>,
  own: Counted | undefined,
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
    const day = today();
    const sums = await select<{ userId: string; micro: number }>(
      tx,
      'SELECT user_id, micro FROM billing_day_use WHERE space_id = ? AND day = ? AND user_id IN (?)',
      [spaceId, day, [everybody, userId]],
    );
    const usedBy = (who: string) =>
      (sums.find((sum) => sum.userId === who)?.micro ?? 0) - (own?.day === day ? own.micro : 0);
    if (caps.perDay !== null) rooms.push(caps.perDay - usedBy(everybody));
    if (caps.perMemberPerDay !== null) rooms.push(caps.perMemberPerDay - usedBy(userId));
  }
  return Math.max(0, Math.min(Number.POSITIVE_INFINITY, ...rooms));
}

/** The user id of the row with the sum over all members. */
const everybody = '';

/** Adds to the cost of a day's calls. The caller must have locked the space's balances. */
export async function countUse(
  tx: Transaction,
  { spaceId, userId }: Pick<HoldRequest, 'spaceId' | 'userId'>,
  { day, micro }: Counted,
): Promise<void> {
  const isKept = Date.now() - Date.parse(day) < keptDays * 86_400_000;
  if (micro === 0 || !isKept) return;
  await execute(
    tx,
    'INSERT INTO billing_day_use (space_id, day, user_id, micro) VALUES ? ON DUPLICATE KEY UPDATE micro = micro + VALUES(micro)',
    [[everybody, userId].map((who) => [spaceId, day, who, micro])],
  );
}

export async function purgeDayUse(database: Database, onBatch?: () => void): Promise<number> {
  const before = today(new Date(Date.now() - 2 * keptDays * 86_400_000));
  return deleteInBatches(database, 'DELETE FROM billing_day_use WHERE day < ? LIMIT ?', [before], onBatch);
}
