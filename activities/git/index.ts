import type { GitDeps } from './deps.ts';
import { createMirrorActivities } from './mirrorActivities.ts';
import { createRepositorySteps } from './steps.ts';
import { createGitSweeps } from './sweeps.ts';
import { createTreeActivities } from './treeActivities.ts';

/** What the main queue does for repositories. */
export function createGitActivities(deps: GitDeps) {
  return {
    ...createRepositorySteps(deps),
    ...createMirrorActivities(deps),
    ...createTreeActivities(deps),
    ...createGitSweeps(deps),
  };
}
