import { readdir } from 'node:fs/promises';
import { type RemovedRepository, removedRepositories } from '../../models/git/removal.ts';
import { knownRepositories } from '../../models/git/repository.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, sweepEach } from '../sweepEach.ts';
import type { GitDeps } from './deps.ts';

const namesAtOnce = 200;

/** What the sweeper does for repositories. Their orders are operations, which it looks after as such. */
export function createGitSweeps({ config, database, gitMirrors, logger, workflows }: GitDeps) {
  return {
    /** Has repositories removed whose items are gone for good. */
    sweepRepositories: (): Promise<SweepReport> =>
      sweepEach<RemovedRepository>({
        logger,
        before: new Date(Date.now() - config.sweeper.graceSeconds * 1_000),
        page: (page) => removedRepositories(database, page),
        look: async (repository) => asSwept(await workflows.interruptRepository(repository), 'started'),
      }),

    /** Removes what this machine has of repositories that are gone, with their space or by another machine. */
    async sweepMirrors(): Promise<number> {
      using heartbeat = keepAlive();
      const names = (await foldersIn(config.git.dir)).filter((name) => /^itm_\w+$/.test(name));
      let removed = 0;
      for (let from = 0; from < names.length; from += namesAtOnce) {
        const some = names.slice(from, from + namesAtOnce);
        const known = await knownRepositories(database, some);
        for (const itemId of some.filter((name) => !known.has(name))) {
          heartbeat.cancelled.throwIfAborted();
          await gitMirrors.remove({ itemId, spaceId: '' });
          removed += 1;
        }
      }
      return removed;
    },
  };
}

export const gitSweeps = ['sweepRepositories', 'sweepMirrors'] as const satisfies readonly (keyof ReturnType<
  typeof createGitSweeps
>)[];

async function foldersIn(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    // Nothing was ever cloned here.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
