import { forgetDeliveries } from '../../models/apps/deliveries.ts';
import {
  type ActiveRun,
  activeRuns,
  forgetApp,
  forgetOldRuns,
  type RemovedApp,
  removedApps,
} from '../../models/apps/removal.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, sweepEach } from '../sweepEach.ts';
import type { AppDeps } from './deps.ts';

type SweepDeps = Pick<AppDeps, 'config' | 'database' | 'logger' | 'workflows'>;

export function createAppSweeps({ config, database, logger, workflows }: SweepDeps) {
  const before = () => new Date(Date.now() - config.sweeper.graceSeconds * 1_000);
  return {
    /** Starts the workflows of runs that have none. One that waits is told when it is its turn, or looks by itself. */
    sweepRuns: (): Promise<SweepReport> =>
      sweepEach<ActiveRun>({
        logger,
        before: before(),
        page: (page) => activeRuns(database, page),
        async well(runs) {
          return new Set([...(await workflows.runningRuns(runs))].map(({ id }) => id));
        },
        look: async (run, isWell) => (isWell ? 'left' : asSwept(await workflows.startRun(run), 'started')),
      }),

    /** Leaves nothing of apps that were removed, when their runs have ended. */
    sweepRemovedApps: (): Promise<SweepReport> =>
      sweepEach<RemovedApp>({
        logger,
        before: before(),
        page: (page) => removedApps(database, page),
        async look(app) {
          const left = await forgetApp(database, app);
          for (const run of left) void workflows.startRun(run);
          return left.length === 0 ? 'ended' : 'reminded';
        },
      }),

    /** Leaves nothing of runs that ended long ago. */
    async purgeOldRuns(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return forgetOldRuns(database, old, () => heartbeat.cancelled.throwIfAborted());
    },

    /** Leaves nothing of what webhooks have brought long ago, but what a delivery is known by. */
    async purgeOldDeliveries(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.apps.deliveryRetentionMs);
      return forgetDeliveries(database, old, () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

export const appSweeps = [
  'sweepRuns',
  'sweepRemovedApps',
  'purgeOldRuns',
  'purgeOldDeliveries',
] as const satisfies readonly (keyof ReturnType<typeof createAppSweeps>)[];
