import { askForDue, type DueDraft, draftsToDiscard, draftsToSave } from '../../models/git/draftSweep.ts';
import { moveDraft } from '../../models/git/placing.ts';
import { removedRepositories, removeRepositoriesOf } from '../../models/git/purge.ts';
import { knownRepositories } from '../../models/git/repository.ts';
import { keepAlive } from '../keepAlive.ts';
import { requireOrder } from '../order.ts';
import {
  asSwept,
  graceBefore,
  type SweepReport,
  type Sweeps,
  type Swept,
  sweepActors,
  sweepEach,
} from '../sweepEach.ts';
import type { GitDeps } from './ordered.ts';

/** The sweeps for repositories. Orders are operations, and are swept as such. */
export function createGitSweeps(deps: GitDeps) {
  const { config, database, gitMirrors, logger, workflows } = deps;

  async function lookAfterDraft(draft: DueDraft): Promise<Swept> {
    if (draft.isLost === true) {
      await moveDraft(database, draft);
      return 'started';
    }
    if (!(await askForDue(database, draft))) return 'left';
    return asSwept(await workflows.startRepository({ id: draft.itemId, spaceId: draft.spaceId }), 'started');
  }

  return {
    /** Repositories whose items are gone for good: they are removed. */
    sweepRepositories: sweepActors(deps, { rows: removedRepositories, tell: workflows.interruptRepository }),

    /** Saves drafts, committed and uncommitted work. A draft whose computer was deleted moves to another one. */
    sweepDrafts(): Promise<SweepReport> {
      const savedBefore = new Date(Date.now() - config.git.draftSaveMs);
      return sweepEach<DueDraft>({
        logger,
        before: graceBefore(config),
        page: (page) => draftsToSave(database, { ...page, savedBefore }),
        look: lookAfterDraft,
      });
    },

    /** Removes the rest of drafts that were discarded, or could not be made. */
    sweepDiscardedDrafts: (): Promise<SweepReport> =>
      sweepEach<DueDraft>({
        logger,
        before: new Date(Date.now() - config.git.draftSaveMs),
        page: (page) => draftsToDiscard(database, page),
        look: lookAfterDraft,
      }),

    /** Removes the folders of repositories that are gone, and tidies the others on this machine. */
    async sweepMirrors(): Promise<number> {
      using heartbeat = keepAlive();
      return await gitMirrors.sweep({
        known: (itemIds) => knownRepositories(database, itemIds),
        onFailure: (itemId, error) =>
          logger.warn({ err: error, itemId }, 'A mirror could not be swept; the next sweep tries again.'),
        signal: heartbeat.cancelled,
      });
    },
  };
}

export const gitSweeps = {
  rescue: ['sweepRepositories', 'sweepDrafts', 'sweepDiscardedDrafts'],
  upkeep: ['sweepMirrors'],
} as const satisfies Sweeps<keyof ReturnType<typeof createGitSweeps>>;

export function createRepositoryPurges({ database, workflows }: GitDeps) {
  return {
    /**
     * Starts the removal of a deleted space's repositories, and returns how many are left. At 0, all their operations
     * have ended.
     */
    async purgeRepositoriesOf(scope: { threadId: string } | { spaceId: string }): Promise<number> {
      await requireOrder(database, scope);
      if (!('spaceId' in scope)) return 0;
      const left = await removeRepositoriesOf(database, scope.spaceId);
      for (const repository of left) await workflows.interruptRepository(repository);
      return left.length;
    },
  };
}
