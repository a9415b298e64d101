import { repository } from '../../workflows/git/repository.ts';
import type { LauncherParts } from '../launcherKit.ts';
import { gitTaskQueue } from '../taskQueues.ts';

export function createGitLauncher({ config, kit }: LauncherParts) {
  const repositories = kit.actor(repository, {
    inputOf: (itemId, limits) => ({ itemId, gitQueue: gitTaskQueue(config.installation), ...limits }),
    summary: 'Repository',
  });
  return { startRepository: repositories.tell, interruptRepository: repositories.interrupt };
}
