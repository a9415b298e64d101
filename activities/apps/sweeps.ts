import { noteRepositorySeen, type UnseenChange, unseenChanges } from '../../models/apps/changes.ts';
import { forgetDeliveries } from '../../models/apps/forgetDeliveries.ts';
import { activeRuns, forgetApp, forgetOldRuns, type RemovedApp, removedApps } from '../../models/apps/removal.ts';
import { asCalendar, type DueSchedule, dueSchedules, waitingSchedules } from '../../models/apps/schedules.ts';
import { keepAlive } from '../keepAlive.ts';
import { graceBefore, purgeOlder, type SweepReport, type Sweeps, sweepActors, sweepEach } from '../sweepEach.ts';
import type { AppDeps } from './deps.ts';
import { readApp, takeDueAppRun } from './takeDueAppRun.ts';

type SweepDeps = Pick<AppDeps, 'appManifests' | 'config' | 'database' | 'logger' | 'workflows'>;

export function createAppSweeps(deps: SweepDeps) {
  const { config, database, logger, workflows } = deps;
  return {
    /** Runs that have not ended. One that waits is told when it is its turn, and looks by itself in between. */
    sweepRuns: sweepActors(deps, { rows: activeRuns, tell: workflows.startRun, running: workflows.runningRuns }),

    /** Takes into use what was changed of apps that nobody has looked at since, or has it wait. */
    sweepChangedApps: (): Promise<SweepReport> =>
      sweepEach<UnseenChange>({
        logger,
        before: graceBefore(config),
        page: (page) => unseenChanges(database, page),
        async look({ id, number, appId }) {
          await readApp(deps, appId);
          // The working tree of a repository may be away for long: it is looked at again whenever it is used.
          await noteRepositorySeen(database, { id, number });
          return 'ended';
        },
      }),

    /** Schedules whose tick has come, and nothing in Temporal has told of it. */
    sweepDueAppSchedules: (): Promise<SweepReport> =>
      sweepEach<DueSchedule>({
        logger,
        before: graceBefore(config),
        page: (page) => dueSchedules(database, page),
        async look({ id: scheduleId }) {
          await takeDueAppRun(deps, { scheduleId, aheadMs: 0 });
          return 'started';
        },
      }),

    /** Compares the schedules in Temporal with the rows: either may have been lost, or be behind. */
    async mendAppSchedules() {
      using heartbeat = keepAlive();
      const pages = async function* () {
        for await (const page of waitingSchedules(database)) {
          heartbeat.cancelled.throwIfAborted();
          yield page.map(asCalendar);
        }
      };
      return workflows.mendAppSchedules(pages());
    },

    /** Leaves nothing of apps that were removed, when their runs have ended. */
    sweepRemovedApps: (): Promise<SweepReport> =>
      sweepEach<RemovedApp>({
        logger,
        before: graceBefore(config),
        page: (page) => removedApps(database, page),
        async look(app) {
          const left = await forgetApp(database, app);
          for (const run of left) void workflows.startRun(run);
          return left.length === 0 ? 'ended' : 'reminded';
        },
      }),

    /** Runs that ended long ago. */
    purgeOldRuns: purgeOlder(config.sweeper.recordRetentionMs, (before, onBatch) =>
      forgetOldRuns(database, before, onBatch),
    ),

    /** What webhooks have brought long ago, but for the facts that a delivery is known by. */
    purgeOldDeliveries: purgeOlder(config.apps.deliveryRetentionMs, (before, onBatch) =>
      forgetDeliveries(database, before, onBatch),
    ),
  };
}

export const appSweeps = {
  rescue: ['sweepRuns', 'sweepChangedApps', 'sweepDueAppSchedules'],
  upkeep: ['mendAppSchedules', 'sweepRemovedApps', 'purgeOldRuns', 'purgeOldDeliveries'],
  quietened: ['sweepDueAppSchedules'],
} as const satisfies Sweeps<keyof ReturnType<typeof createAppSweeps>>;
