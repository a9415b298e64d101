import { join } from 'node:path';

import { withoutVainRetries } from '../activities/unstorable.ts';
import type { Config } from '../config/index.ts';
import { bundleWorkflows } from './bundle.ts';
import type { TemporalConnection } from './connection.ts';
import { ThriftyWorker } from './worker.ts';

export interface RunningWorker {
  /** Stops polling, lets activities end for the grace period, then leaves them to other workers. */
  stop(): Promise<void>;
  /** Whether it polls for work. False before it has started and while it stops. */
  isPolling(): boolean;
  /** Its present load, for metrics. */
  load(): { activities: number; workflowTasks: number; cachedWorkflows: number };
  /** Rejects when the worker fails by itself. */
  readonly failed: Promise<never>;
}

/** The workers of one process as one. */
export function joinWorkers(workers: readonly RunningWorker[]): RunningWorker {
  return {
    isPolling: () => workers.every((worker) => worker.isPolling()),
    load() {
      const loads = workers.map((worker) => worker.load());
      const sum = (key: keyof ReturnType<RunningWorker['load']>) => loads.reduce((all, load) => all + load[key], 0);
      return {
        activities: sum('activities'),
        workflowTasks: sum('workflowTasks'),
        cachedWorkflows: sum('cachedWorkflows'),
      };
    },
    failed: Promise.race(workers.map(({ failed }) => failed)),
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()));
    },
  };
}

/** How many model calls and tools one worker process runs at once. They mostly wait for others. */
const mostActivities = 1_000;

export interface WorkerOptions {
  temporal: TemporalConnection;
  config: Config;
  taskQueue: string;
  /** By the names under which workflows call them. */
  activities: object;
  /** Whether it runs workflows too. A host runs activities only. */
  runsWorkflows: boolean;
  shutdownGraceMs: number;
  /** How many activities it runs at once, if fewer than usual. */
  maxActivities?: number;
}

/** Starts the worker of one queue. */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { temporal, config, taskQueue, activities, runsWorkflows, shutdownGraceMs, maxActivities } = options;
  const worker = await ThriftyWorker.create({
    connection: temporal.native,
    namespace: config.temporal.namespace,
    taskQueue,
    ...(runsWorkflows && { workflowBundle: await bundleWorkflows(join(config.dataDir, 'cache')) }),
    activities,
    interceptors: { activity: [withoutVainRetries] },
    maxConcurrentActivityTaskExecutions: maxActivities ?? mostActivities,
    // The first model call of a turn is part of its first workflow task.
    maxConcurrentLocalActivityExecutions: mostActivities,
    maxConcurrentWorkflowTaskExecutions: mostActivities,
    maxCachedWorkflows: 2_000,
    // A workflow whose worker has died continues elsewhere after this time. The default is 10 s, independent of
    // heartbeats.
    stickyQueueScheduleToStartTimeout: config.temporal.heartbeatTimeoutMs,
    shutdownGraceTime: shutdownGraceMs,
    // An activity that ignores its cancellation must not hold up the process: its work is written, or tried again.
    shutdownForceTime: shutdownGraceMs + 5_000,
    // Cancellations arrive with heartbeats, so these are not held back for long.
    maxHeartbeatThrottleInterval: 1_000,
    defaultHeartbeatThrottleInterval: 1_000,
  });
  const running = worker.run();
  return {
    isPolling: () => worker.getState() === 'RUNNING',
    load() {
      const { numInFlightActivities, numInFlightWorkflowActivations, numCachedWorkflows } = worker.getStatus();
      return {
        activities: numInFlightActivities,
        workflowTasks: numInFlightWorkflowActivations,
        cachedWorkflows: numCachedWorkflows,
      };
    },
    failed: new Promise((_, reject) => running.catch(reject)),
    async stop() {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await running.catch(() => undefined);
    },
  };
}
