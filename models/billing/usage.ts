import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { charge } from './credits.ts';
import { creditsExhausted } from './holds.ts';
import { toMicro } from './money.ts';

/** Usage that costs by time instead of by call. */
export interface UsageRates {
  computerCreditsPerMinute: number;
  storageCreditsPerGibDay: number;
  /** Whether an uncovered part becomes the space's debt. Otherwise it is unbilled. */
  enforced: boolean;
}

const gibibyte = 1024 ** 3;

/**
 * Books minutes of a running computer, numbered from its start: from `from` to before `to`. A minute of the same
 * generation is booked only once. Returns how many were booked now.
 */
export async function chargeComputerMinutes(
  tx: Transaction,
  rates: UsageRates,
  minutes: { spaceId: string; computerId: string; generation: number; from: number; to: number },
): Promise<number> {
  const { spaceId, computerId, generation, from, to } = minutes;
  const micro = Math.ceil(toMicro(rates.computerCreditsPerMinute));
  let booked = 0;
  for (let minute = from; micro > 0 && minute < to; minute++) {
    const isNew = await charge(tx, {
      spaceId,
      kind: 'computer',
      sourceId: `computer:${computerId}:${generation}:${minute}`,
      micro,
      detail: computerId,
      enforced: rates.enforced,
    });
    if (isNew) booked++;
  }
  return booked;
}

/** Books what a space stores on one day (UTC), in whole micro-credits, rounded up. A day is booked only once. */
export async function chargeStorageDay(
  database: Database,
  rates: UsageRates,
  { spaceId, day, bytes }: { spaceId: string; day: string; bytes: number },
): Promise<boolean> {
  return transaction(database, (tx) =>
    charge(tx, {
      spaceId,
      kind: 'storage',
      sourceId: `storage:${spaceId}:${day}`,
      micro: Math.ceil((toMicro(rates.storageCreditsPerGibDay) * bytes) / gibibyte),
      detail: `${bytes} bytes`,
      enforced: rates.enforced,
    }),
  );
}

/**
 * Call this before starting a computer. Throws 402 if computers have a price, credits are enforced and the space has
 * none.
 */
export async function requireCredits(database: Database, rates: UsageRates, spaceId: string): Promise<void> {
  if (!rates.enforced || rates.computerCreditsPerMinute === 0) return;
  const sql = 'SELECT available FROM billing_balances WHERE space_id = ?';
  const rows = await select<{ available: number }>(database.pool, sql, [spaceId]);
  if ((rows[0]?.available ?? 0) === 0) throw creditsExhausted(spaceId);
}

/** The bytes stored by spaces that are not deleted, ordered by space id, after one of them. */
export async function storedBytesAfter(
  database: Database,
  spaceId: string,
  limit: number,
): Promise<{ spaceId: string; bytes: number }[]> {
  const sql = `SELECT d.space_id, d.used_bytes AS bytes FROM drives d JOIN spaces s ON s.id = d.space_id
      WHERE d.space_id > ? AND d.used_bytes > 0 AND s.deleted_at IS NULL ORDER BY d.space_id LIMIT ?`;
  const rows = await select(database.pool, sql, [spaceId, limit]);
  return rows.map((row) => ({ spaceId: String(row.spaceId), bytes: Number(row.bytes) }));
}
