import type { Request, Response } from 'express';
import { asNotFound, DomainError } from '../../base/errors.ts';
import type { App } from '../../models/apps/app.ts';
import { askToRun, setComputer } from '../../models/apps/askToRun.ts';
import { lookAtApp } from '../../models/apps/lookAtApp.ts';
import { getRun, isActive, listRuns, type Run } from '../../models/apps/run.ts';
import { askToCancel } from '../../models/apps/steps.ts';
import { afterOf, positionUnknown, sendText, wantsEvents } from '../computers/processes/sendText.ts';
import { streamOutput } from '../computers/processes/streamOutput.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorizeOperation } from '../frame/auth/authorizeSpace.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { waitForRow } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeApp } from './authorizeApp.ts';
import { presentOutcome, presentRun } from './presentRun.ts';
import { logOf } from './runLog.ts';
import { runTimeline } from './runTimeline.ts';

/** Runs of apps. */
export function runRoutes(deps: RouteDeps) {
  const { database, launcher } = deps;
  const router = createRouter();

  router.post('/api/apps/:driveItemId/process/run', async (req, res) => {
    const app = await open(req, res, pathOf<'runApp'>(req).driveItemId);
    const { component } = bodyOf<'runApp'>(req) ?? {};
    await makeOnce<'runApp'>(deps, req, res, 'run', (id) => run(req, app, id, component), { status: 200 });
  });

  router.post('/api/apps/:driveItemId/process/set-computer', async (req, res) => {
    const app = await open(req, res, pathOf<'setAppComputer'>(req).driveItemId);
    const { computerId, component } = bodyOf<'setAppComputer'>(req);
    await makeOnce<'setAppComputer'>(
      deps,
      req,
      res,
      'run',
      async (id) => {
        const by = { actor: actorOf(req), by: authorityOf(callerOf(req)) };
        return run(req, await setComputer(database, app, computerId, by), id, component);
      },
      { status: 200 },
    );
  });

  router.get('/api/apps/:driveItemId/runs', async (req, res) => {
    const { app } = await authorizeApp(deps, req, pathOf<'listRuns'>(req).driveItemId);
    const { data, nextCursor } = await listRuns(database, app.id, pageOf(req));
    answer<'listRuns'>(res, 200, { data: data.map(presentRun), nextCursor });
  });

  router.get('/api/runs/:runId', async (req, res) => {
    answer<'getRun'>(res, 200, presentRun(await authorizeRun(deps, req, pathOf<'getRun'>(req).runId)));
  });

  router.get('/api/runs/:runId/log', async (req, res) => {
    const found = await authorizeRun(deps, req, pathOf<'readRunLog'>(req).runId);
    const after = afterOf(req, queryOf<'readRunLog'>(req).after);
    const log = await logOf(deps, found);
    if (after > log.bytes) throw positionUnknown();
    if (wantsEvents(req)) {
      const records = (signal: AbortSignal) => log.records(after, { follow: true, signal });
      return streamOutput(deps, req, res, { open: records, spaceId: found.spaceId });
    }
    await sendText(req, res, log.bytes, (signal) => log.records(after, { follow: false, signal }));
  });

  router.get('/api/runs/:runId/timeline', async (req, res) => {
    const found = await authorizeRun(deps, req, pathOf<'getRunTimeline'>(req).runId);
    answer<'getRunTimeline'>(res, 200, await runTimeline(deps, found));
  });

  router.post('/api/runs/:runId/cancel', async (req, res) => {
    const found = await authorizeRun(deps, req, pathOf<'cancelRun'>(req).runId);
    if (!(await askToCancel(database, found, actorOf(req)))) {
      throw new DomainError('conflict', 'RUN_ENDED', 'The run has ended already.');
    }
    void launcher.startRun(found);
    answer<'cancelRun'>(res, 200, presentRun(await getRun(database, found.id)));
  });

  /** The app with its current manifest. */
  async function open(req: Request, res: Response, itemId: string): Promise<App> {
    const { app, placed } = await authorizeApp(deps, req, itemId);
    return lookAtApp(deps, app, placed.item, goneOf(res));
  }

  async function run(req: Request, app: App, id: string, component?: string): Promise<AnswerOf<'runApp'>> {
    const request = { app, id, component, trigger: 'request', actor: actorOf(req) } as const;
    const begun = await askToRun(deps, { ...request, ...authorityOf(callerOf(req)) });
    void launcher.startRun(begun);
    const last = await waitForRow(
      req,
      () => getRun(database, begun.id),
      (run) => !isActive(run),
    );
    return { ...presentOutcome(last), ...(app.waitingId !== null && { waitingVersionId: app.waitingId }) };
  }

  return router;
}

/** A run, for a caller whose role allows the operation. 404 for everyone else. */
async function authorizeRun(deps: RouteDeps, req: Request, runId: string): Promise<Run> {
  const run = await getRun(deps.database, runId);
  await authorizeOperation(deps, req, run.spaceId).catch((error: unknown) => {
    throw asNotFound(error, 'run');
  });
  return run;
}
