import type { GitConfig } from '../../../config/git.ts';
import type { LiveComputers } from '../../computers/liveComputers.ts';
import type { GitTrees } from '../treeTypes.ts';
import { createChanges } from './changes.ts';
import { createDraftWork } from './drafts.ts';
import { createExchange } from './exchange.ts';
import { createLooks } from './looks.ts';
import { TreeShell } from './treeShell.ts';

/** Git in working trees on computers, by processes in their sandboxes. */
export function createGitTrees(computers: Pick<LiveComputers, 'work'>, config: Pick<GitConfig, 'maxRefs'>): GitTrees {
  const shell = new TreeShell(computers);
  return {
    ...createLooks(shell),
    ...createExchange(shell, config),
    ...createChanges(shell),
    ...createDraftWork(shell),
  };
}
