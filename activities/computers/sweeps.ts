import { restlessComputers } from '../../models/computers/computer.ts';
import { forgetSilentHosts } from '../../models/computers/removedHosts.ts';
import { collectSave, looseSaves } from '../../models/computers/saveRows.ts';
import { unmadeSnapshots } from '../../models/computers/snapshots.ts';
import { failLostSnapshot } from '../../models/computers/snapshotting.ts';
import { graceBefore, type SweepReport, type Sweeps, sweepActors, sweepEach } from '../sweepEach.ts';
import type { ComputerDeps } from './deps.ts';

export function createComputerSweeps(deps: ComputerDeps) {
  const { config, database, logger, workflows } = deps;
  return {
    /** Computers that run or have an order. */
    sweepComputers: sweepActors(deps, {
      rows: restlessComputers,
      tell: workflows.startComputer,
      running: workflows.runningComputers,
      needsNoWord: ({ wish }) => wish === null,
    }),

    /** Ends snapshots whose operation has ended without them. */
    sweepSnapshots: (): Promise<SweepReport> =>
      sweepEach({
        logger,
        before: graceBefore(config),
        page: (page) => unmadeSnapshots(database, page),
        look: async ({ id }) => ((await failLostSnapshot(database, id)) ? 'ended' : 'left'),
      }),

    /** Forgets silent hosts without computers. Returns how many. */
    forgetSilentHosts: (): Promise<number> => forgetSilentHosts(database, new Date()),

    /** Removes saved homes that belong to nothing any more. */
    collectHomeSaves: (): Promise<SweepReport> =>
      sweepEach({
        logger,
        before: graceBefore(config),
        page: (page) => looseSaves(database, page),
        look: async ({ id }) => ((await collectSave(database, id)) > 0 ? 'ended' : 'left'),
      }),
  };
}

export const computerSweeps = {
  rescue: ['sweepComputers', 'sweepSnapshots'],
  upkeep: ['forgetSilentHosts', 'collectHomeSaves'],
} as const satisfies Sweeps<keyof ReturnType<typeof createComputerSweeps>>;
