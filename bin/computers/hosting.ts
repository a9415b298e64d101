import type { AddressInfo } from 'node:net';
import { availableParallelism, hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ComputerDeps } from '../../activities/computers/deps.ts';
import { createDriveBackend } from '../../activities/computers/drives/driveBackend.ts';
import { EarlyStarts } from '../../activities/computers/earlyStarts.ts';
import { HomeSaves } from '../../activities/computers/homeSaves.ts';
import { createHostActivities } from '../../activities/computers/hostActivities.ts';
import { HostBeat } from '../../activities/computers/hostBeat.ts';
import { listen } from '../../api/frame/server.ts';
import { type LaunchConfig, loadLaunchConfig } from '../../config/launch.ts';
import { closeBrowsers } from '../../integrations/browsers/browser.ts';
import { writeBrowserPolicies } from '../../integrations/browsers/policies.ts';
import { createHost } from '../../integrations/computers/host/createHost.ts';
import type { DriveOptions } from '../../integrations/computers/host/drives/drives.ts';
import type { Host, HostOptions } from '../../integrations/computers/host/host.ts';
import { HostError } from '../../integrations/computers/host/hostErrors.ts';
import { isTaken } from '../../integrations/computers/host/hostLock.ts';
import { hostLayout } from '../../integrations/computers/host/layout.ts';
import { createHostServer } from '../../integrations/computers/host/server.ts';
import type { ComputerEgress } from '../../integrations/egress/computerEgress.ts';
import { computerEnvironment } from '../../integrations/egress/computerEnvironment.ts';
import { type TrustFiles, writeTrustFiles } from '../../integrations/egress/trustFiles.ts';
import { noteShutdown } from '../../models/computers/beats.ts';
import { noteDrive } from '../../models/computers/driveAuthority.ts';
import { withdrawHost } from '../../models/computers/hosts.ts';
import { StackError } from '../../stack/errors.ts';
import { getAgent, getDriveDaemon } from '../../stack/programs.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { hostTaskQueue } from '../../temporal/taskQueues.ts';
import { type RunningWorker, startWorker } from '../../temporal/workers.ts';
import type { Services } from '../support/services.ts';
import { createComputerEgress } from './egress.ts';

/** This process as a host of computers. */
export interface Hosting {
  host: Host;
  worker: RunningWorker;
  earlyStarts: EarlyStarts;
  /**
   * Stops being a host. Without `withComputers` the computers go on running, and the next process on this folder takes
   * them over.
   */
  stop(options: { withComputers: boolean }): Promise<void>;
}

/**
 * Makes this process a host of computers. Undefined where hosting is switched off or the machine cannot run computers;
 * the log says why in one line. `taken` while another process serves the folder. With `isServed`, other processes can
 * use its computers.
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
    labels: config.computers.labels,
    saveFormat: host.saves.format,
  });
  const stopping = new AbortController();
  const homeSaves = new HomeSaves(deps, stopping.signal);
  const worker = await startWorker({
    temporal,
    config,
    taskQueue: hostTaskQueue(config.installation, host.hostId),
    activities: createHostActivities({ ...deps, homeSaves }),
    runsWorkflows: false,
    shutdownGraceMs,
  });
  const earlyStarts = new EarlyStarts(deps);
  await beat.beat().catch((error: unknown) => {
    logger.warn({ err: error }, 'The host could not say what it runs; trying again.');
  });
  const running = [beat.run(stopping.signal), homeSaves.run({ wholeHomes: !host.rights.diskLimits })];
  const ages = 'Seconds since the oldest change of a home on this host that is not saved yet.';
  services.meters.gauge(
    'unsaved_home_seconds',
    ages,
    'host',
    async () => new Map([[host.hostId, homeSaves.oldestSeconds()]]),
  );
  return {
    host,
    worker,
    earlyStarts,
    async stop({ withComputers }) {
      stopping.abort();
      await earlyStarts.close();
      await Promise.all(running);
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

/** Omits undefined options, so that the machine's defaults apply. */
function driverOptions({ drivers, runsc, docker }: Services['config']['computers']): Partial<HostOptions> {
  return { ...(drivers !== undefined && { drivers }), ...(runsc !== undefined && { runsc }), docker };
}

/** No registries means that the host takes no images. */
function registryOptions(images: Services['config']['environments']['images']): Partial<HostOptions> {
  const { registries: allowed, insecure, authFile, mostMiB } = images;
  return allowed.length === 0 ? {} : { registries: { allowed, insecure, authFile, mostMiB } };
}

/** The drives of spaces in the computers of this host. Computers run without them if their program cannot be had. */
async function driveOptions(services: Services, launch: LaunchConfig): Promise<DriveOptions> {
  const { config, database, logger } = services;
  const refused = config.computers.hasDrives ? undefined : 'the operator has switched drives in computers off';
  const program = refused === undefined ? await driveProgram(services, launch) : { refused };
  return {
    ...program,
    backend: createDriveBackend(services),
    cacheBytes: config.computers.driveCacheBytes,
    onReport(computerId, report) {
      noteDrive(database, computerId, report).catch((error: unknown) => {
        logger.warn({ err: error, computerId }, 'What the host says of the drive in a computer could not be recorded.');
      });
    },
  };
}

async function driveProgram({ config, logger }: Services, launch: LaunchConfig) {
  try {
    const report = (line: string) => logger.info(line);
    const { signal } = new AbortController();
    return { program: await getDriveDaemon({ ...launch, dataDir: config.dataDir, report, signal }) };
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    return { refused: error.message };
  }
}

async function makeHost(
  services: Services,
  egress: ComputerEgress,
): Promise<{ host: Host; trust: TrustFiles } | 'taken' | undefined> {
  const { config, logger, egressAuthorities } = services;
  try {
    const authorities = await egressAuthorities.trusted();
    const trust = await writeTrustFiles(path.join(config.computers.dir, '.trust'), authorities);
    const policies = await writeBrowserPolicies(path.join(config.computers.dir, '.browsers'), trust.besidePublic);
    const launch = loadLaunchConfig();
    const agent = await getAgent({
      ...launch,
      dataDir: config.dataDir,
      report: (line) => logger.info(line),
      signal: new AbortController().signal,
    });
    const host = await createHost({
      agent,
      cacheDir: launch.cacheDir,
      dir: config.computers.dir,
      ...(config.computers.imageMiB !== undefined && { imageMiB: config.computers.imageMiB }),
      ...driverOptions(config.computers),
      ...registryOptions(config.environments.images),
      ...(config.computers.memoryMiB !== undefined && { memoryMiB: config.computers.memoryMiB }),
      egress,
      beforeEnd: closeBrowsers,
      drive: await driveOptions(services, launch),
      readOnly: () => [...trust.readOnly, ...policies],
      log: (level, facts, message) => logger[level](facts, message),
    });
    if (host.rights.off.length > 0)
      logger.info({ off: host.rights.off }, 'Computers run without some of the limits that root would give.');
    return { host, trust };
  } catch (error) {
    if (error instanceof HostError && error.code === 'FOLDER_TAKEN') return 'taken';
    if ((error instanceof HostError && error.code === 'COMPUTERS_OFF') || error instanceof StackError) {
      logger.warn(`Computers are off here: ${error.message}.`);
    } else logger.error({ err: error }, 'Computers are off here, since the host could not be set up.');
    return undefined;
  }
}

interface ServedHost {
  /** The host announces it to other processes. */
  address: string;
  close(): void;
}

/** Serves the computers of this process to other processes. Throws a ConfigError if it cannot listen. */
async function serveHost({ config, identity, logger }: Services, host: Host): Promise<ServedHost> {
  const { host: bound, port, url } = config.computers.server;
  const { server, close } = createHostServer({
    host,
    verify: identity.hostTokens.verify,
    log: (facts, message) => logger.error(facts, message),
  });
  await listen(server, { host: bound, port }, { host: 'ATRIUM_COMPUTERS_HOST', port: 'ATRIUM_COMPUTERS_PORT' });
  return { address: url ?? `http://${nameOf(bound)}:${(server.address() as AddressInfo).port}`, close };
}

/** A host that listens on every address is known by the machine's name. */
function nameOf(bound: string): string {
  if (bound === '0.0.0.0' || bound === '::') return hostname();
  return bound.includes(':') ? `[${bound}]` : bound;
}

/** This process as the host of its folder, either now or once the current host ends. */
export interface KeptHosting {
  /** Rejects when the host's worker fails by itself. */
  readonly failed: Promise<never>;
  stop: Hosting['stop'];
}

/** How often to check whether another process still holds the folder's lock. */
const lookMs = 2_000;

/**
 * Starts hosting, and keeps trying while `start` returns `taken`. Undefined where this process should not be a host.
 */
export async function keepHosting(
  start: () => Promise<Hosting | 'taken' | undefined>,
  { logger, onHosting }: { logger: Logger; onHosting: (hosting: Hosting) => void },
): Promise<KeptHosting | undefined> {
  const first = await start();
  if (first === undefined) return undefined;
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  // Without a listener a rejection would end the process.
  failed.catch(() => undefined);
  const take = (hosting: Hosting) => {
    hosting.worker.failed.catch(fail);
    onHosting(hosting);
    return hosting;
  };
  const stopping = new AbortController();
  const waitForIt = async (): Promise<Hosting | undefined> => {
    logger.info('Another process runs the computers of this folder. This one takes over when that one ends.');
    while (!stopping.signal.aborted) {
      await delay(lookMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return undefined;
      try {
        const next = await start();
        if (next === undefined) return undefined;
        if (next === 'taken') continue;
        logger.info('This process has taken over the computers of its folder.');
        return take(next);
      } catch (error) {
        logger.error({ err: error }, 'The computers of this folder could not be taken over; trying again.');
      }
    }
    return undefined;
  };
  const hosting = first === 'taken' ? waitForIt() : Promise.resolve(take(first));
  return {
    failed,
    async stop(options) {
      stopping.abort();
      await (await hosting)?.stop(options);
    },
  };
}
