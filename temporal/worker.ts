import { join } from 'node:path';
import { Worker } from '@temporalio/worker';
import type { ActivityDeps } from '../activities/deps.ts';
import { createActivities } from '../activities/index.ts';
import { bundleWorkflows } from './bundle.ts';
import type { TemporalConnection } from './connection.ts';
import { mainTaskQueue } from './taskQueues.ts';

export interface RunningWorker {
  /** Stops polling, lets activities end for the grace period, then gives them up to other workers. */
  stop(): Promise<void>;
  /** Rejects when the worker fails by itself. */
  readonly failed: Promise<never>;
}

/** How many model calls and tools one worker process carries at once: they mostly wait for others. */
const maxActivities = 1_000;

export async function startWorker(options: {
  temporal: TemporalConnection;
  deps: ActivityDeps;
  shutdownGraceMs: number;
}): Promise<RunningWorker> {
  const { temporal, deps, shutdownGraceMs } = options;
  const { config } = deps;
  const worker = await Worker.create({
    connection: temporal.native,
    namespace: config.temporal.namespace,
    taskQueue: mainTaskQueue(config.installation),
    workflowBundle: await bundleWorkflows(join(config.dataDir, 'cache')),
    activities: createActivities(deps),
    maxConcurrentActivityTaskExecutions: maxActivities,
    maxConcurrentWorkflowTaskExecutions: 100,
    maxCachedWorkflows: 2_000,
    // A workflow whose worker has died goes on elsewhere after this; by default that takes 10 s, whatever the heartbeats say.
    stickyQueueScheduleToStartTimeout: config.temporal.heartbeatTimeoutMs,
    shutdownGraceTime: shutdownGraceMs,
    // An activity that ignores its cancellation does not hold up the process: what it was at is written, or tried again.
    shutdownForceTime: shutdownGraceMs + 5_000,
    // Cancellations arrive with heartbeats, so these are not held back for long.
    maxHeartbeatThrottleInterval: 1_000,
    defaultHeartbeatThrottleInterval: 1_000,
  });
  const running = worker.run();
  deps.headStarts.open(deps);
  return {
    failed: new Promise((_, reject) => running.catch(reject)),
    async stop() {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await running.catch(() => undefined);
      await deps.headStarts.close();
    },
  };
}
