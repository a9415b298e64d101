import { buildEnvironment } from '../../workflows/environments/buildEnvironment.ts';
import { hostTaskQueue, runTaskQueue } from '../taskQueues.ts';
import { type OperationDefinition, start } from './operation.ts';

export const environmentOperations = {
  buildEnvironment: {
    scope: 'computers:write',
    start: ({ subjectId }, { computers, environments, installation, temporal: { heartbeatTimeoutMs } }) =>
      start(buildEnvironment, {
        versionId: subjectId,
        runQueue: runTaskQueue(installation),
        queuePrefix: hostTaskQueue(installation, ''),
        stepMs: environments.stepMs,
        hostLostMs: computers.hostLostMs,
        heartbeatTimeoutMs,
      }),
    // No request waits for a build.
    failures: {},
  },
} satisfies Record<string, OperationDefinition>;
