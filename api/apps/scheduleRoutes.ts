import type { Request } from 'express';
import type { App } from '../../models/apps/app.ts';
import { lookAtApp } from '../../models/apps/lookAtApp.ts';
import { scheduleNamed } from '../../models/apps/manifest.ts';
import { setPaused } from '../../models/apps/pauseSchedule.ts';
import { type AppSchedule, asCalendar, schedulesOf } from '../../models/apps/schedules.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { optionalTime, time } from '../frame/times.ts';
import { authorizeApp, requireScopesOfMaker } from './authorizeApp.ts';

/** The schedules of apps. */
export function scheduleRoutes(deps: RouteDeps) {
  const { database, launcher } = deps;
  const router = createRouter();

  router.get('/api/apps/:driveItemId/schedules', async (req, res) => {
    const { app, placed } = await authorizeApp(deps, req, pathOf<'listSchedules'>(req).driveItemId);
    const now = await lookAtApp(deps, app, placed.item, goneOf(res));
    const data = (await schedulesOf(database, app.id)).map((schedule) => presentSchedule(now, schedule));
    answer<'listSchedules'>(res, 200, { data, nextCursor: null });
  });

  router.post('/api/apps/:driveItemId/schedules/:component/pause', async (req, res) => {
    answer<'pauseSchedule'>(res, 200, await change(req, true));
  });

  router.post('/api/apps/:driveItemId/schedules/:component/resume', async (req, res) => {
    answer<'resumeSchedule'>(res, 200, await change(req, false));
  });

  async function change(req: Request, isPaused: boolean): Promise<AnswerOf<'pauseSchedule'>> {
    const { driveItemId, component } = pathOf<'pauseSchedule'>(req);
    const { app } = await authorizeApp(deps, req, driveItemId);
    if (!isPaused) await requireScopesOfMaker(deps, req, app);
    const schedule = await setPaused(database, app, component, { isPaused, actor: actorOf(req) });
    // The sweeper does this too.
    void launcher.scheduleApp(asCalendar(schedule));
    return presentSchedule(app, schedule);
  }

  return router;
}

function presentSchedule(app: App, schedule: AppSchedule): AnswerOf<'pauseSchedule'> {
  const { component, cron, timeZone, jitterSeconds, enabled, pause, failures, dueAt, last } = schedule;
  const overlap = scheduleNamed(app.manifest, component)?.overlap ?? 'skip';
  return {
    ...{ component, cron, timeZone, overlap, jitterSeconds, enabled, failures, nextRunAt: optionalTime(dueAt) },
    pause: pause && { ...pause, at: time(pause.at) },
    last: last && { scheduledAt: time(last.at), runId: last.runId, code: last.code },
  };
}
