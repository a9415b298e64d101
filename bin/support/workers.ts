import { watchSizes } from '../../activities/databases/sizes.ts';
import type { createMain } from '../../activities/main.ts';
import { orAfter } from '../../base/async.ts';
import { spacesOf } from '../../models/databases/accounts.ts';
import { namesOf } from '../../models/databases/names.ts';
import type { Launcher } from '../../temporal/launcher.ts';
import {
  backupTaskQueue,
  gitTaskQueue,
  longDatabaseTaskQueue,
  mainTaskQueue,
  runTaskQueue,
  webhookTaskQueue,
} from '../../temporal/taskQueues.ts';
import { joinWorkers, type RunningWorker, startWorker, type WorkerOptions } from '../../temporal/workers.ts';
import type { Services } from './services.ts';

const watchStopMs = 1_000;
/**
 * Limits for one process. Each of these reads or writes as fast as the databases' server can, and holds large rows in
 * memory.
 */
const [backupsAtOnce, longDatabasesAtOnce] = [2, 4];
/** Limit for one process. Each of these delivers to one endpoint for some seconds, then makes room for the next. */
const endpointsAtOnce = 200;

/** Starts the workers of all task queues. If one fails, the others are stopped. */
export async function startWorkers(
  options: Pick<WorkerOptions, 'temporal' | 'config' | 'shutdownGraceMs'>,
  { activities, databaseActivities, gitActivities, runActivities, webhookActivities }: ReturnType<typeof createMain>,
): Promise<RunningWorker> {
  const { installation, git } = options.config;
  const queues = [
    { taskQueue: mainTaskQueue(installation), activities, runsWorkflows: true },
    {
      taskQueue: gitTaskQueue(installation),
      activities: gitActivities,
      runsWorkflows: false,
      maxActivities: git.slots,
    },
    { taskQueue: runTaskQueue(installation), activities: runActivities, runsWorkflows: false },
    {
      taskQueue: backupTaskQueue(installation),
      activities: databaseActivities.backup,
      runsWorkflows: false,
      maxActivities: backupsAtOnce,
    },
    {
      taskQueue: longDatabaseTaskQueue(installation),
      activities: databaseActivities.long,
      runsWorkflows: false,
      maxActivities: longDatabasesAtOnce,
    },
    {
      taskQueue: webhookTaskQueue(installation),
      activities: webhookActivities,
      runsWorkflows: false,
      maxActivities: endpointsAtOnce,
    },
  ];
  const started = await Promise.allSettled(queues.map((queue) => startWorker({ ...options, ...queue })));
  const workers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = started.find((one) => one.status === 'rejected');
  if (failed === undefined) return joinWorkers(workers);
  await Promise.all(workers.map((worker) => worker.stop()));
  throw failed.reason;
}

/** Ends long statements on the server for the databases of spaces, where there is one, and measures sizes there. */
export function watchTenants(services: Services, workflows: Launcher): { stop(): Promise<void> } {
  const { config, database, logger, tenantServer } = services;
  const stopped = new AbortController();
  const isHere = config.databases.folder !== undefined;
  const watched = tenantServer?.watch(namesOf(config.installation), {
    signal: stopped.signal,
    tenantsOf: isHere ? (users) => spacesOf(database, users) : undefined,
    onFailure: (error) => logger.warn({ err: error }, 'The statements of spaces in their databases cannot be watched.'),
  });
  const measured = tenantServer && watchSizes({ ...services, workflows }, tenantServer, stopped.signal);
  return {
    async stop() {
      stopped.abort();
      // A server that does not answer must not delay the stop.
      await orAfter(Promise.all([watched, measured]), watchStopMs, undefined);
    },
  };
}
