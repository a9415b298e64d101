import type { GitDeps } from './deps.ts';
import { createDraftActivities } from './draftActivities.ts';
import { createHostingSweeps } from './hostingSweeps.ts';
import { createMirrorActivities } from './mirrorActivities.ts';
import { oneAfterTheOther } from './oneAfterTheOther.ts';
import { createRepositoryPurges } from './purges.ts';
import { createRepositorySteps } from './steps.ts';
import { createGitSweeps } from './sweeps.ts';
import { createTreeActivities } from './treeActivities.ts';

/**
 * What the main queue does for repositories: also the work of workflows that began before there was a queue of git's
 * own.
 */
export function createGitActivities(deps: GitDeps) {
  const { fillTree, changeTree, saveTree, updateTree, ...ofRemotes } = createTreeActivities(deps);
  const { restoreDraft, ...ofDrafts } = createDraftActivities(deps);
  const { openDraft, fillDraft, saveDraft, updateDraft, joinDraft, dropDraft } = ofDrafts;
  const steps = oneAfterTheOther(deps, {
    ...{ fill: fillTree, change: changeTree, save: saveTree, update: updateTree },
    ...{ openDraft, fillDraft, saveDraft, updateDraft, join: joinDraft, dropDraft },
  });
  return {
    ...createRepositorySteps(deps),
    ...createMirrorActivities(deps),
    ...ofRemotes,
    ...{ fillTree: steps.fill, changeTree: steps.change, saveTree: steps.save, updateTree: steps.update },
    ...{ restoreDraft, openDraft: steps.openDraft, fillDraft: steps.fillDraft, saveDraft: steps.saveDraft },
    ...{ updateDraft: steps.updateDraft, joinDraft: steps.join, dropDraft: steps.dropDraft },
    ...createRepositoryPurges(deps),
    ...createGitSweeps(deps),
    ...createHostingSweeps(deps),
  };
}

/** What the queue of git does: work that waits for servers of other people, for as long as they like. */
export function createGitQueueActivities(deps: GitDeps) {
  const { cloneMirror } = createMirrorActivities(deps);
  const { bringFiles, fetchMirror, pushMirror, restoreFiles } = createTreeActivities(deps);
  const { restoreDraft } = createDraftActivities(deps);
  return { cloneMirror, bringFiles, fetchMirror, pushMirror, restoreFiles, restoreDraft };
}
