import { setTimeout as delay } from 'node:timers/promises';
import { createHeadStarts, type HeadStarts } from '../../activities/chat/headStarts.ts';
import { createMain } from '../../activities/main.ts';
import type { ReadinessCheck } from '../../api/frame/deps.ts';
import { createWorkerMetrics } from '../../api/frame/metrics.ts';
import { makeApi } from '../../api/frame/server.ts';
import { checkTimeoutMs } from '../../api/service/readiness.ts';
import { startWorkerProbes, type WorkerProbes } from '../../api/service/workerProbes.ts';
import { Merged } from '../../base/merged.ts';
import type { Config } from '../../config/index.ts';
import { createAppManifests } from '../../integrations/apps/manifests.ts';
import { startEgressProxy } from '../../integrations/egress/startEgressProxy.ts';
import { createGitTrees } from '../../integrations/git/trees/createGitTrees.ts';
import { installationOf } from '../../models/installation/installation.ts';
import { onEndpointWork } from '../../models/webhooks/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { createLauncher } from '../../temporal/launcher.ts';
import {
  assertOwnSchedules,
  ensureSchedules,
  hasSchedules,
  InstallationTakenError,
} from '../../temporal/schedules/installation.ts';
import { loadWorkflowThread } from '../../temporal/worker.ts';
import type { RunningWorker } from '../../temporal/workers.ts';
import { type Hosting, type KeptHosting, keepHosting, startHosting } from '../computers/hosting.ts';
import { createHostOf, createLiveComputers } from '../computers/liveComputers.ts';
import { CommandFailure } from './failure.ts';
import { createServices } from './services.ts';
import { registerWhereAllowed } from './temporal.ts';
import { chatDeps, mainDeps } from './workDeps.ts';
import { startWorkers, watchTenants } from './workers.ts';

export type Role = 'api' | 'worker' | 'both';

const scheduleRetryMs = 2_000;
const claimTimeoutMs = 5_000;

/** The objects of one Atrium process. The roles of a process with both share them. */
export async function createRuntime(config: Config, logger: Logger, role: Role) {
  if (role !== 'api') loadWorkflowThread();
  const services = await createServices({ config, logger, readers: role !== 'worker', remoteWriters: role === 'api' });
  const { database, temporal } = services;
  let headStarts: HeadStarts | undefined;
  let hosting: Hosting | undefined;
  const launcher = createLauncher({
    client: temporal.client,
    config,
    logger,
    sharesWorkersConnection: role === 'both',
    headStart: {
      holdMs: () => headStarts?.holdMs,
      begin: async (turn, settings) => headStarts?.begin(turn, settings),
    },
  });

  // A start that begins after the last change of an endpoint sees all of them.
  const starts = new Merged<unknown>();
  onEndpointWork(database, (endpoint) => {
    void starts.run(endpoint.id, () => launcher.startWebhookEndpoint(endpoint));
  });

  let mayHost = role !== 'api' && config.computers.hosted;
  const hostOf = createHostOf({
    database,
    config,
    tokens: services.identity.hostTokens,
    host: () => hosting?.host,
    mayHost: () => mayHost,
  });
  const liveComputers = createLiveComputers({
    database,
    config,
    launcher,
    hostOf,
    startEarly: async (computer) => (await hosting?.earlyStarts.begin(computer)) ?? false,
  });

  const makeOwnApi = () =>
    makeApi({
      ...services,
      launcher,
      hostOf,
      liveComputers,
      gitTrees: createGitTrees(liveComputers, config.git),
      appManifests: createAppManifests({ ...services, liveComputers }),
    });

  /** Starts the workers of all task queues, and gives turns head starts while they run. */
  async function startOwnWorker({ shutdownGraceMs }: { shutdownGraceMs: number }): Promise<RunningWorker> {
    const proxy = await startEgressProxy({ guard: services.egressGuard });
    const main = createMain(mainDeps(services, launcher, liveComputers, proxy));
    const worker = await startWorkers({ temporal, config, shutdownGraceMs }, main);
    headStarts = main.headStarts;
    const watch = watchTenants(services, launcher);
    return {
      ...worker,
      async stop() {
        headStarts = undefined;
        await watch.stop();
        // After the grace period, Temporal gives up activities. But it waits for local ones, and those wait for head
        // starts.
        const grace = setTimeout(() => void main.headStarts.close(), shutdownGraceMs);
        await worker.stop().finally(() => clearTimeout(grace));
        await main.headStarts.close();
        await proxy[Symbol.asyncDispose]();
      },
    };
  }

  /** Makes this process a host of computers if it may and can be one: now, or when another host ends. */
  async function startOwnHosting({ shutdownGraceMs }: { shutdownGraceMs: number }): Promise<KeptHosting | undefined> {
    // A process that is both API and worker reaches its computers without a socket.
    const options = { shutdownGraceMs, isServed: role === 'worker' };
    const kept = await keepHosting(() => startHosting(services, launcher, options), {
      logger,
      onHosting(own) {
        hosting = own;
      },
    });
    mayHost = hosting !== undefined;
    return kept;
  }

  return {
    config,
    database,
    launcher,
    logger,

    /** Gives turns head starts in a process that is only an API, unless workers make all model calls. */
    startHeadStarts({ shutdownGraceMs }: { shutdownGraceMs: number }): { stop(): Promise<void> } | undefined {
      if (role !== 'api' || !config.chat.apiCallsModels) return undefined;
      const own = createHeadStarts(chatDeps(services, launcher, liveComputers), { leavesResults: true });
      headStarts = own;
      return {
        async stop() {
          headStarts = undefined;
          await own.close(shutdownGraceMs);
        },
      };
    },

    /**
     * Starts the parts of this process's role in parallel: a worker waits for its thread, and a host for programs.
     * Meanwhile the API is made; the caller opens it. If one fails, the others are stopped.
     */
    async startParts(options: { shutdownGraceMs: number }) {
      const { identity } = await installationOf(database);
      await temporal.client.withDeadline(Date.now() + claimTimeoutMs, () =>
        assertOwnSchedules(temporal.client, config, identity).catch((error: unknown) => {
          if (error instanceof InstallationTakenError) throw new CommandFailure(error.message);
          logger.warn({ err: error }, 'Whose the schedules are could not be asked.');
        }),
      );
      const worker = role === 'api' ? undefined : startOwnWorker(options);
      const hosting = role === 'api' ? undefined : startOwnHosting(options);
      const api = role === 'worker' ? undefined : Promise.resolve().then(makeOwnApi);
      const parts = await Promise.allSettled([worker, hosting, api]);
      const failed = parts.find((part) => part.status === 'rejected');
      if (failed === undefined) return { worker: await worker, hosting: await hosting, api: await api };
      await (await hosting?.catch(() => undefined))?.stop({ withComputers: role === 'both' });
      await (await worker?.catch(() => undefined))?.stop();
      throw failed.reason;
    },

    /** Serves a worker's probes if a port is set for them. */
    async startWorkerProbes(worker: RunningWorker): Promise<WorkerProbes | undefined> {
      const { host, port } = config.workerHttp;
      if (port === undefined) return undefined;
      const polls = {
        name: 'worker',
        async check() {
          if (!worker.isPolling()) throw new Error('The worker does not poll.');
        },
      };
      const answers = { name: 'database', check: () => database.check(checkTimeoutMs) };
      return startWorkerProbes({
        host,
        port,
        metricsKey: config.http.metricsKey,
        // A worker is not ready without Temporal.
        checks: [polls, answers, ...services.checks.map((part) => (part.name === 'temporal' ? needed(part) : part))],
        metrics: createWorkerMetrics(worker, services.meters),
        logger,
      });
    },

    /**
     * Creates the schedules, and creates them again if Temporal loses its data. Without the sweeper, lost work would
     * not be found.
     */
    async keepSchedules(signal: AbortSignal): Promise<void> {
      let lookAgainMs: number;
      for (let isFirst = true; !signal.aborted; ) {
        try {
          if (isFirst || !(await hasSchedules(temporal.client, config))) {
            if (!isFirst) logger.warn('The schedules are gone: Temporal has lost its data. They are made again.');
            await registerWhereAllowed(config);
            await ensureSchedules(temporal.client, config, (await installationOf(database)).identity);
          }
          isFirst = false;
          lookAgainMs = config.sweeper.intervalSeconds * 1_000;
        } catch (error) {
          logger.warn({ err: error }, 'The schedules could not be looked after; trying again.');
          lookAgainMs = scheduleRetryMs;
        }
        await delay(lookAgainMs, undefined, { signal }).catch(() => undefined);
      }
    },

    close: () => services.close(),
  };
}

function needed({ without: _, ...part }: ReadinessCheck): ReadinessCheck {
  return part;
}
