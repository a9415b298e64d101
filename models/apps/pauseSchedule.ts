import { notFound } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type App, lockApp } from './app.ts';
import { type AppSchedule, lockSchedule, nextOf, pauseIn } from './schedules.ts';

/**
 * Pauses or resumes a schedule. Resuming resets the failures, and the next tick is the first from now on. Does nothing
 * if the schedule is already in that state. Throws 404.
 */
export async function setPaused(
  database: Database,
  app: App,
  component: string,
  { isPaused, actor }: { isPaused: boolean; actor: Actor },
): Promise<AppSchedule> {
  const where = { appId: app.id, component };
  return transaction(database, async (tx) => {
    await lockApp(tx, app);
    const schedule = await lockSchedule(tx, where);
    if (schedule === undefined) throw notFound('schedule');
    if (schedule.enabled !== isPaused) return schedule;
    const target = `${app.itemId}/${component}`;
    await appendAudit(tx, app.spaceId, actor, isPaused ? 'app.schedule-paused' : 'app.schedule-resumed', target);
    if (isPaused) await pauseIn(tx, schedule, { code: 'PAUSED', detail: 'A user paused the schedule.' });
    else {
      const anew = { enabled: 1, pauseCode: null, pauseDetail: null, pausedAt: null, failures: 0 };
      const row = { ...anew, ...nextOf(schedule, new Date()), version: schedule.version + 1 };
      await execute(tx, 'UPDATE app_schedules SET ? WHERE id = ?', [row, schedule.id]);
    }
    return (await lockSchedule(tx, where)) ?? schedule;
  });
}
