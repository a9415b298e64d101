import type { RowDataPacket } from 'mysql2';
import { nextTick } from '../../base/schedule.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { lockAutomation } from './automation.ts';

/** Moves every schedule on to its first tick after `now`, without runs for missed ticks. */
export async function passMissedTicks(database: Database, now: Date): Promise<number> {
  const sql = 'SELECT id FROM automations WHERE next_run_at <= ?';
  const [rows] = await database.pool.query<RowDataPacket[]>(sql, [now]);
  for (const { id } of rows) {
    await transaction(database, async (tx) => {
      const automation = await lockAutomation(tx, id);
      const next = automation?.schedule == null ? undefined : nextTick(automation.schedule, now);
      await execute(tx, 'UPDATE automations SET next_run_at = ? WHERE id = ?', [next ?? null, id]);
    });
  }
  return rows.length;
}
