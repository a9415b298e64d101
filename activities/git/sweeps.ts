import { askForDue, type DueDraft, draftsToDiscard, draftsToSave } from '../../models/git/draftSweep.ts';
import { moveDraft } from '../../models/git/placing.ts';
import { type RemovedRepository, removedRepositories } from '../../models/git/removal.ts';
import { knownRepositories } from '../../models/git/repository.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, type Sweeps, type Swept, sweepEach } from '../sweepEach.ts';
import type { GitDeps } from './deps.ts';

/** What the sweeper does for repositories. Their orders are operations, which it looks after as such. */
export function createGitSweeps({ config, database, gitMirrors, logger, workflows }: GitDeps) {
  async function lookAfterDraft(draft: DueDraft): Promise<Swept> {
    if (draft.isLost === true) {
      await moveDraft(database, draft);
      return 'started';
    }
    if (!(await askForDue(database, draft))) return 'left';
    return asSwept(await workflows.startRepository({ id: draft.itemId, spaceId: draft.spaceId }), 'started');
  }

  return {
    /** Has repositories removed whose items are gone for good. */
    sweepRepositories: (): Promise<SweepReport> =>
      sweepEach<RemovedRepository>({
        logger,
        before: new Date(Date.now() - config.sweeper.graceSeconds * 1_000),
        page: (page) => removedRepositories(database, page),
        look: async (repository) => asSwept(await workflows.interruptRepository(repository), 'started'),
      }),

    /** Saves what drafts have, committed or not; those whose computer was deleted get a place on another one. */
    sweepDrafts(): Promise<SweepReport> {
      const before = new Date(Date.now() - config.sweeper.graceSeconds * 1_000);
      const savedBefore = new Date(Date.now() - config.git.draftSaveMs);
      return sweepEach<DueDraft>({
        logger,
        before,
        page: (page) => draftsToSave(database, { ...page, savedBefore }),
        look: lookAfterDraft,
      });
    },

    /** Removes what is left of drafts that were discarded, or could not be made. */
    sweepDiscardedDrafts: (): Promise<SweepReport> =>
      sweepEach<DueDraft>({
        logger,
        before: new Date(Date.now() - config.git.draftSaveMs),
        page: (page) => draftsToDiscard(database, page),
        look: lookAfterDraft,
      }),

    /** Removes what this machine has of repositories that are gone, with their space or by another machine. */
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
