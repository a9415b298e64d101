import { isCalledOff } from '../../models/git/orders.ts';
import {
  endRepositoryStep,
  nextRepositoryStep,
  type RepositoryStep,
  type RepositoryStepEnd,
} from '../../models/git/steps.ts';
import { createDraftActivities } from './draftActivities.ts';
import { createHostingSweeps, hostingSweeps } from './hostingSweeps.ts';
import { createMirrorActivities } from './mirrorActivities.ts';
import { oneAfterTheOther } from './oneAfterTheOther.ts';
import type { GitDeps } from './ordered.ts';
import { createGitSweeps, createRepositoryPurges, gitSweeps } from './sweeps.ts';
import { createTreeActivities } from './treeActivities.ts';

/** The activities of the main queue for repositories. */
function createGitActivities(deps: GitDeps) {
  const { database } = deps;
  const { fillTree, changeTree, saveTree, updateTree } = createTreeActivities(deps);
  const { openDraft, fillDraft, saveDraft, updateDraft, joinDraft, dropDraft } = createDraftActivities(deps);
  const { removeRepository } = createMirrorActivities(deps);
  const steps = oneAfterTheOther(deps, {
    ...{ fill: fillTree, change: changeTree, save: saveTree, update: updateTree },
    ...{ openDraft, fillDraft, saveDraft, updateDraft, join: joinDraft, dropDraft },
  });
  return {
    lookAtRepository: ({ itemId }: { itemId: string }): Promise<RepositoryStep> => nextRepositoryStep(database, itemId),
    endRepositoryStep: async (end: RepositoryStepEnd): Promise<void> => void (await endRepositoryStep(database, end)),
    isOrderCalledOff: ({ orderId }: { orderId: string }): Promise<boolean> => isCalledOff(database, orderId),
    removeRepository,
    ...{ fillTree: steps.fill, changeTree: steps.change, saveTree: steps.save, updateTree: steps.update },
    ...{ openDraft: steps.openDraft, fillDraft: steps.fillDraft, saveDraft: steps.saveDraft },
    ...{ updateDraft: steps.updateDraft, joinDraft: steps.join, dropDraft: steps.dropDraft },
    ...createRepositoryPurges(deps),
    ...createGitSweeps(deps),
    ...createHostingSweeps(deps),
  };
}

/** The activities of git's own task queue. They wait for git servers, which may be slow. */
export function createGitQueueActivities(deps: GitDeps) {
  const { cloneMirror } = createMirrorActivities(deps);
  const { bringFiles, fetchMirror, pushMirror, restoreFiles } = createTreeActivities(deps);
  const { restoreDraft } = createDraftActivities(deps);
  return { cloneMirror, bringFiles, fetchMirror, pushMirror, restoreFiles, restoreDraft };
}

export const git = {
  create: createGitActivities,
  sweeps: { rescue: gitSweeps.rescue, upkeep: [...gitSweeps.upkeep, ...hostingSweeps.upkeep] },
};
