import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { countDelivered, lockUsage } from './usage.ts';

interface Old {
  id: string;
  spaceId: string;
}

const forgottenAtOnce = 200;
/** A run that has not ended still needs the content. */
const isOver = 'NOT EXISTS (SELECT 1 FROM app_runs r WHERE r.delivery_id = d.id AND r.active = 1)';

/** Forgets the content of deliveries before a time, except those that still have to run. Returns their number. */
export async function forgetDeliveries(database: Database, before: Date, onBatch: () => void): Promise<number> {
  for (let count = 0; ; onBatch()) {
    const sql = `SELECT d.id, d.space_id FROM app_deliveries d FORCE INDEX (app_deliveries_old)
        WHERE d.has_content = 1 AND d.created_at < ? AND ${isOver} ORDER BY d.created_at, d.id LIMIT ?`;
    const rows = await select<Old>(database.pool, sql, [before, forgottenAtOnce]);
    for (const [spaceId, old] of Map.groupBy(rows, (row) => row.spaceId)) {
      await forget(database, spaceId, old);
    }
    count += rows.length;
    if (rows.length < forgottenAtOnce) return count;
  }
}

/** Forgets a space's oldest deliveries until it stores at most `mostBytes`, except those that still have to run. */
export async function makeRoom(database: Database, spaceId: string, mostBytes: number): Promise<void> {
  for (;;) {
    const usage = await select(database.pool, 'SELECT delivered_bytes AS bytes FROM app_usage WHERE space_id = ?', [
      spaceId,
    ]);
    let excess = Number(usage[0]?.bytes ?? 0) - mostBytes;
    if (excess <= 0) return;
    const sql = `SELECT d.id, d.kept_bytes AS bytes FROM app_deliveries d FORCE INDEX (app_deliveries_space)
        WHERE d.space_id = ? AND d.has_content = 1 AND ${isOver} ORDER BY d.created_at, d.id LIMIT ?`;
    const rows = await select<{ id: string; bytes: number }>(database.pool, sql, [spaceId, forgottenAtOnce]);
    const enough = rows.filter(({ bytes }) => {
      const isWanted = excess > 0;
      excess -= bytes;
      return isWanted;
    });
    if (enough.length === 0) return;
    await forget(database, spaceId, enough);
  }
}

/**
 * Forgets contents. The ids of signed and bearer deliveries stay, so that none runs twice. Unauthenticated deliveries
 * are deleted, because anyone could send ids without end.
 */
async function forget(database: Database, spaceId: string, old: readonly { id: string }[]): Promise<void> {
  await transaction(database, async (tx) => {
    await lockUsage(tx, spaceId);
    const rows = await select<{ id: string; bytes: number; isKnown: number }>(
      tx,
      `SELECT id, kept_bytes AS bytes, (delivery_id IS NOT NULL AND auth <> 'none') AS isKnown FROM app_deliveries
        WHERE id IN (?) AND has_content = 1 FOR UPDATE`,
      [old.map(({ id }) => id)],
    );
    const idsOf = (isKnown: number) => rows.filter((row) => row.isKnown === isKnown).map(({ id }) => id);
    const [known, nameless] = [idsOf(1), idsOf(0)];
    if (nameless.length > 0) await execute(tx, 'DELETE FROM app_deliveries WHERE id IN (?)', [nameless]);
    if (known.length > 0) {
      const content = 'has_content = NULL, query = NULL, headers = NULL, body = NULL, kept_bytes = 0';
      await execute(tx, `UPDATE app_deliveries SET ${content} WHERE id IN (?)`, [known]);
    }
    await countDelivered(tx, spaceId, -rows.reduce((sum, { bytes }) => sum + bytes, 0));
  });
}

/** Deletes all deliveries of a removed app. */
export async function removeDeliveriesOf(database: Database, appId: string): Promise<void> {
  for (;;) {
    const sql = 'SELECT id, space_id FROM app_deliveries WHERE app_id = ? ORDER BY id LIMIT ?';
    const found = await select<Old>(database.pool, sql, [appId, forgottenAtOnce]);
    const [first] = found;
    if (first === undefined) return;
    await forget(database, first.spaceId, found);
    await execute(database.pool, 'DELETE FROM app_deliveries WHERE id IN (?)', [found.map(({ id }) => id)]);
  }
}
