import { availableParallelism } from 'node:os';
import path from 'node:path';
import type { ComputerDeps } from '../../activities/computers/deps.ts';
import { EarlyStarts } from '../../activities/computers/earlyStarts.ts';
import { createHostActivities } from '../../activities/computers/hostActivities.ts';
import { HostBeat } from '../../activities/computers/hostBeat.ts';
import { closeBrowsers } from '../../integrations/browsers/browser.ts';
import { writeBrowserPolicies } from '../../integrations/browsers/policies.ts';
import { createHost } from '../../integrations/computers/host/createHost.ts';
import type { Host, HostOptions } from '../../integrations/computers/host/host.ts';
import { HostError } from '../../integrations/computers/host/hostErrors.ts';
import { isTaken } from '../../integrations/computers/host/hostLock.ts';
import { hostLayout } from '../../integrations/computers/host/layout.ts';
import type { ComputerEgress } from '../../integrations/egress/computerEgress.ts';
import { computerEnvironment } from '../../integrations/egress/computerEnvironment.ts';
import { type TrustFiles, writeTrustFiles } from '../../integrations/egress/trustFiles.ts';
import { noteShutdown } from '../../models/computers/beats.ts';
import { withdrawHost } from '../../models/computers/hosts.ts';
import { hostTaskQueue } from '../../temporal/taskQueues.ts';
import { type RunningWorker, startWorker } from '../../temporal/workers.ts';
import type { Services } from '../support/services.ts';
import { createComputerEgress } from './egress.ts';
import { serveHost } from './serveHost.ts';

/** This process as a host of computers. */
export interface Hosting {
  host: Host;
  worker: RunningWorker;
  earlyStarts: EarlyStarts;
  /**
   * Stops being a host. Unless all that there is stops with it, the computers go on, and the next process of this folder
   * takes them over.
   */
  stop(options: { withComputers: boolean }): Promise<void>;
}

/**
 * Makes this process a host of computers. Undefined where that is switched off, or where the machine cannot run any,
 * with one line in the log: nothing else is the worse for it. `taken` while another process serves the folder. Where it
 * is served, other processes can use its computers.
 */
export async function startHosting(
  services: Services,
  workflows: ComputerDeps['workflows'],
  { shutdownGraceMs, isServed }: { shutdownGraceMs: number; isServed: boolean },
): Promise<Hosting | 'taken' | undefined> {
  const { config, database, logger, temporal } = services;
  if (!config.computers.hosted) return undefined;
  if (isTaken(hostLayout(config.computers.dir).lock)) return 'taken';
  const egress = createComputerEgress(services);
  const made = await makeHost(services, egress);
  if (made === undefined || made === 'taken') {
    await egress[Symbol.asyncDispose]();
    return made;
  }
  const { host, trust } = made;
  const giveUp = async (error: unknown) => {
    await host.close();
    await egress[Symbol.asyncDispose]();
    throw error;
  };
  const served = isServed ? await serveHost(services, host).catch(giveUp) : undefined;
  const deps = { ...services, workflows, host, environment: computerEnvironment(trust.paths) };
  const beat = new HostBeat(deps, {
    address: served?.address ?? null,
    cpuMilli: availableParallelism() * 1_000,
    memoryMiB: host.limits.memoryMiB,
    maxRunning: config.computers.perHost,
  });
  const worker = await startWorker({
    temporal,
    config,
    taskQueue: hostTaskQueue(config.installation, host.hostId),
    activities: createHostActivities(deps),
    runsWorkflows: false,
    shutdownGraceMs,
  });
  const earlyStarts = new EarlyStarts(deps);
  const stopping = new AbortController();
  await beat.beat().catch((error: unknown) => {
    logger.warn({ err: error }, 'The host could not say what it runs; trying again.');
  });
  const beating = beat.run(stopping.signal);
  return {
    host,
    worker,
    earlyStarts,
    async stop({ withComputers }) {
      stopping.abort();
      await earlyStarts.close();
      await beating;
      await withdrawHost(database, host.hostId).catch(() => undefined);
      await worker.stop();
      served?.close();
      if (withComputers) {
        await host.shutdown();
        await noteShutdown(deps, host.hostId);
      } else await host.close();
      await egress[Symbol.asyncDispose]();
    },
  };
}

/** What is undefined is as usual for the machine. */
function driverOptions({ drivers, runsc, docker }: Services['config']['computers']): Partial<HostOptions> {
  return { ...(drivers !== undefined && { drivers }), ...(runsc !== undefined && { runsc }), docker };
}

async function makeHost(
  { config, logger, egressAuthorities }: Services,
  egress: ComputerEgress,
): Promise<{ host: Host; trust: TrustFiles } | 'taken' | undefined> {
  try {
    const authorities = await egressAuthorities.trusted();
    const trust = await writeTrustFiles(path.join(config.computers.dir, '.trust'), authorities);
    const policies = await writeBrowserPolicies(path.join(config.computers.dir, '.browsers'), trust.besidePublic);
    const host = await createHost({
      dir: config.computers.dir,
      ...(config.computers.imageMiB !== undefined && { imageMiB: config.computers.imageMiB }),
      ...driverOptions(config.computers),
      ...(config.computers.memoryMiB !== undefined && { memoryMiB: config.computers.memoryMiB }),
      egress,
      beforeEnd: closeBrowsers,
      readOnly: () => [...trust.readOnly, ...policies],
      log: (level, facts, message) => logger[level](facts, message),
    });
    if (host.rights.off.length > 0) logger.info({ off: host.rights.off }, 'Computers run with less than root gives.');
    return { host, trust };
  } catch (error) {
    if (error instanceof HostError && error.code === 'FOLDER_TAKEN') return 'taken';
    if (error instanceof HostError && error.code === 'COMPUTERS_OFF') {
      logger.warn(`Computers are off here: ${error.message}.`);
    } else logger.error({ err: error }, 'Computers are off here, since the host could not be set up.');
    return undefined;
  }
}
