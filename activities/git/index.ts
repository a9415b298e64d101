import { isCalledOff } from '../../models/git/orders.ts';
import {
  endRepositoryStep,
  nextRepositoryStep,
  type RepositoryStep,
  type RepositoryStepEnd,
} from '../../models/git/steps.ts';
import { createDraftActivities } from './draftActivities.ts';
import { createHostingSweeps } from './hostingSweeps.ts';
import { createMirrorActivities } from './mirrorActivities.ts';
import { oneAfterTheOther } from './oneAfterTheOther.ts';
import type { GitDeps } from './ordered.ts';
import { createGitSweeps, createRepositoryPurges } from './sweeps.ts';
import { createTreeActivities } from './treeActivities.ts';

/** The activities of the main queue for repositories. Workflows from before git had its own queue use all of them here. */
export function createGitActivities(deps: GitDeps) {
  const { database } = deps;
  const trees = createTreeActivities(deps);
  const drafts = createDraftActivities(deps);
  const { openDraft, fillDraft, saveDraft, updateDraft, joinDraft, dropDraft } = drafts;
  const { join, fill, change, save, update, ...ofDrafts } = oneAfterTheOther(deps, {
    ...{ fill: trees.fillTree, change: trees.changeTree, save: trees.saveTree, update: trees.updateTree },
    ...{ openDraft, fillDraft, saveDraft, updateDraft, join: joinDraft, dropDraft },
  });
  return {
    nextRepositoryStep: ({ itemId }: { itemId: string }): Promise<RepositoryStep> =>
      nextRepositoryStep(database, itemId),
    endRepositoryStep: async (end: RepositoryStepEnd): Promise<void> => void (await endRepositoryStep(database, end)),
    isOrderCalledOff: ({ orderId }: { orderId: string }): Promise<boolean> => isCalledOff(database, orderId),
    ...createMirrorActivities(deps),
    ...trees,
    ...drafts,
    ...{ fillTree: fill, changeTree: change, saveTree: save, updateTree: update, ...ofDrafts, joinDraft: join },
    ...createRepositoryPurges(deps),
    ...createGitSweeps(deps),
    ...createHostingSweeps(deps),
  };
}

/** The activities of git's own queue: work that waits for other people's servers, for as long as these take. */
export function createGitQueueActivities(deps: GitDeps) {
  const { cloneMirror } = createMirrorActivities(deps);
  const { bringFiles, fetchMirror, pushMirror, restoreFiles } = createTreeActivities(deps);
  const { restoreDraft } = createDraftActivities(deps);
  return { cloneMirror, bringFiles, fetchMirror, pushMirror, restoreFiles, restoreDraft };
}
