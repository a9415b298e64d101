import { forgetSilentHosts } from '../../models/computers/removedHosts.ts';
import { type RestlessComputer, restlessComputers } from '../../models/computers/restless.ts';
import { asSwept, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';
import type { ComputerDeps } from './deps.ts';

/** What the sweeper does for computers. */
export function createComputerSweeps({ config, database, logger, workflows }: ComputerDeps) {
  return {
    /** Starts the workflow of each computer that runs, or of which something is wanted, and tells it to look again. */
    sweepComputers: (): Promise<SweepReport> =>
      sweepEach<RestlessComputer>({
        logger,
        before: new Date(Date.now() - config.sweeper.graceSeconds * 1_000),
        page: (page) => restlessComputers(database, page),
        well: async (computers) => {
          const running = await workflows.runningComputers(computers);
          return new Set([...running].filter(({ wish }) => wish === null).map(({ id }) => id));
        },
        look: async (computer, isWell) =>
          isWell ? 'left' : asSwept(await workflows.startComputer(computer), 'started'),
      }),

    /** Forgets hosts that hold nothing and never came back. Returns how many. */
    forgetSilentHosts: (): Promise<number> => forgetSilentHosts(database, new Date()),
  };
}

export const computerSweeps = {
  rescue: ['sweepComputers'],
  upkeep: ['forgetSilentHosts'],
} as const satisfies Sweeps<keyof ReturnType<typeof createComputerSweeps>>;
