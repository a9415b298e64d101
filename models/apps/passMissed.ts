import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';
import { nextOf, scheduleColumns, scheduleOf } from './schedules.ts';

/** Moves every due schedule to its first tick after `now`, without runs for the ticks before. */
export async function passMissedTicks({ pool }: Pick<Database, 'pool'>, now: Date): Promise<number> {
  const sql = `SELECT ${scheduleColumns} FROM app_schedules WHERE due_at <= ?`;
  const [rows] = await pool.query<RowDataPacket[]>(sql, [now]);
  for (const schedule of rows.map(scheduleOf)) {
    await pool.query('UPDATE app_schedules SET ? WHERE id = ?', [nextOf(schedule, now), schedule.id]);
  }
  return rows.length;
}
