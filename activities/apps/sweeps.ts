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
    /** Runs that have not ended. A waiting run is told when its turn comes, and looks by itself in between. */
    sweepRuns: sweepActors(deps, { rows: activeRuns, tell: workflows.startRun, running: workflows.runningRuns }),

    /** Reads apps that have changed since Atrium last read them. A change takes effect, or waits for approval. */
    sweepChangedApps: (): Promise<SweepReport> =>
      sweepEach<UnseenChange>({
        logger,
        before: graceBefore(config),
        page: (page) => unseenChanges(database, page),
        async look({ id, number, appId }) {
          await readApp(deps, appId);
          // A repository's working tree may be away for long. It is looked at again whenever it is used.
          await noteRepositorySeen(database, { id, number });
          return 'ended';
        },
      }),

    /** Schedules whose tick has come without a signal from Temporal. */
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

    /** Compares the schedules in Temporal with the rows. Either may be lost or out of date. */
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

    /** Deletes all rows of removed apps once their runs have ended. */
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

    /** Deletes runs that ended long ago. */
    purgeOldRuns: purgeOlder(config.sweeper.recordRetentionMs, (before, onBatch) =>
      forgetOldRuns(database, before, onBatch),
    ),

    /** Forgets the contents of old deliveries, except the ids by which repeats are recognized. */
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
