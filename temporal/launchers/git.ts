import type { SignalDefinition } from '@temporalio/common';
import type { Config } from '../../config/index.ts';
import { repository, repositoryCalledOffSignal, repositoryChangedSignal } from '../../workflows/git/repository.ts';
import type { LauncherKit, Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { gitTaskQueue } from '../taskQueues.ts';
import { repositoryWorkflowId } from '../workflowIds.ts';

/** Which repository: its item, and the item's space. */
export interface RepositoryReference {
  id: string;
  spaceId: string;
}

export function createGitLauncher(kit: LauncherKit, { installation, temporal }: Config) {
  const tell = ({ id, spaceId }: RepositoryReference, signal: SignalDefinition): Promise<Reached> =>
    kit.startOrSignal(repository, signal, {
      workflowId: repositoryWorkflowId(id),
      args: [
        {
          itemId: id,
          gitQueue: gitTaskQueue(installation),
          heartbeatTimeoutMs: temporal.heartbeatTimeoutMs,
          maxHistoryEvents: temporal.maxHistoryEvents,
        },
      ],
      attributes: [
        { key: spaceIdKey, value: spaceId },
        { key: kindKey, value: 'repository' },
      ],
      summary: 'Repository',
      mayStartAgain: true,
    });

  return {
    /** Has a repository's workflow look at what is to be done: starts it where it rests. */
    startRepository: (reference: RepositoryReference) => tell(reference, repositoryChangedSignal),

    /** The same, where what it is doing may have been called off. */
    interruptRepository: (reference: RepositoryReference) => tell(reference, repositoryCalledOffSignal),
  };
}

export type GitLauncher = ReturnType<typeof createGitLauncher>;
