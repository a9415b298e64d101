import { resolve } from 'node:path';
import type { Environment } from '../config/index.ts';
import { prepareBrowsers } from './browsers.ts';
import { prepareComputers } from './computers.ts';
import type { Durability, StackContext } from './context.ts';
import { prepareDesktops } from './desktops.ts';
import { prepareDataDir, prepareServicesDir } from './folders.ts';
import { prepareGit } from './git.ts';
import { getMariaDb, type MariaDb, startMariaDb } from './mariadb.ts';
import { type ObjectStore, startObjectStore } from './objectStore.ts';
import { getObjectStore, getTemporal } from './programs.ts';
import type { Report } from './report.ts';
import type { Service } from './services.ts';
import { supervise } from './supervise.ts';
import { probeTemporal, startTemporalServer, type TemporalServer } from './temporalServer.ts';
import { startTenantMariaDb, type TenantMariaDb } from './tenantMariadb.ts';

export interface StackOptions {
  dataDir: string;
  /** The parts to run: those without a configured address. */
  need: { database: boolean; temporal: boolean; storage: boolean; tenantDatabase?: boolean };
  /** Whether computers are wanted. They run on programs of the system. */
  computers?: boolean;
  cacheDir: string;
  environment: Environment;
  ports?: 'usual' | 'free';
  bucket?: string;
  furtherDatabases?: string[];
  durability?: Durability;
  databaseSocket?: boolean;
  /** Called once all parts have their processes. Heavy work from then on does not delay their starts. */
  onLaunched?: () => void;
  report?: Report;
  signal?: AbortSignal;
}

export interface Part {
  name: string;
  address: string;
  pid: number;
  /** Why other users of this machine can use the part, if they can. */
  openBecause?: string | undefined;
}

export interface Stack {
  /** The variables of config/ with the addresses of the started parts. */
  environment: Record<string, string>;
  /** The parts as they run now. A part that ended is restarted, with a new process. */
  parts(): Part[];
  onRestart(listener: () => void): void;
  /** Resolves with a line for a person when a part has ended and cannot be restarted. */
  failed: Promise<string>;
  /** Stops the parts in reverse order: the database last, since the others write to it. */
  stop(): Promise<void>;
}

interface Started {
  service: Service;
  address: string;
  openBecause?: string | undefined;
  environment: Record<string, string>;
  /** Rejects if the part does not answer. */
  probe?: ((address: string) => Promise<void>) | undefined;
}

/**
 * Installs and starts the needed parts on this machine, on loopback only. If it throws or the signal aborts, none of
 * them is left running. The caller holds the data directory's lock.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const dataDir = resolve(options.dataDir);
  prepareDataDir(dataDir);
  const starts: Start[] = [];
  const launched = Promise.withResolvers<void>();
  let processes = 0;
  const context: StackContext = {
    dataDir,
    servicesDir: prepareServicesDir(dataDir),
    cacheDir: resolve(options.cacheDir),
    environment: options.environment,
    ports: options.ports ?? 'usual',
    bucket: options.bucket ?? 'atrium',
    furtherDatabases: options.furtherDatabases,
    durability: options.durability,
    databaseSocket: options.databaseSocket,
    onLaunch() {
      processes += 1;
      if (processes === starts.length) launched.resolve();
    },
    report: options.report ?? (() => undefined),
    signal: options.signal ?? new AbortController().signal,
  };

  // Programs are built one after another, since each build uses all cores. Parts start in parallel, since each mostly
  // waits.
  if (options.need.database) {
    const programs = await getMariaDb(context);
    starts.push(
      again(
        (former?: MariaDb) => startMariaDb(context, programs, former),
        ({ url, ownerUrl }) => ({
          ATRIUM_DATABASE_URL: url,
          ATRIUM_DATABASE_MIGRATION_URL: ownerUrl,
        }),
      ),
    );
  }
  if (options.need.tenantDatabase === true) {
    const programs = await getMariaDb(context);
    starts.push(
      again(
        (former?: TenantMariaDb) => startTenantMariaDb(context, programs, former),
        ({ url, adminPort, folder }) => ({
          ATRIUM_TENANT_DATABASE_URL: url,
          ATRIUM_TENANT_DATABASE_FOLDER: folder,
          ATRIUM_TENANT_DATABASE_ADMIN_PORT: String(adminPort),
        }),
      ),
    );
  }
  if (options.need.temporal) {
    const program = await getTemporal(context);
    starts.push(
      again(
        (former?: TemporalServer) => startTemporalServer(context, program, former),
        ({ address, uiUrl }) => ({
          ATRIUM_TEMPORAL_ADDRESS: address,
          ...(uiUrl !== undefined && { ATRIUM_TEMPORAL_UI_URL: uiUrl }),
        }),
        probeTemporal,
      ),
    );
  }
  if (options.need.storage) {
    const program = await getObjectStore(context);
    starts.push(
      again(
        (former?: ObjectStore) => startObjectStore(context, program, former),
        (store) => ({
          ATRIUM_S3_ENDPOINT: store.endpoint,
          ATRIUM_S3_REGION: store.region,
          ATRIUM_S3_BUCKET: context.bucket,
          ATRIUM_S3_ACCESS_KEY_ID: store.accessKeyId,
          ATRIUM_S3_SECRET_ACCESS_KEY: store.secretAccessKey,
        }),
      ),
    );
  }
  const starting = startAll(starts);
  await Promise.race([launched.promise, starting]);
  options.onLaunched?.();
  try {
    const further = await prepareMachine(context, options.computers === true);
    return running(await starting, context, further);
  } catch (error) {
    await stopAll(await starting.catch(() => []));
    throw error;
  }
}

/** Installs the programs that the product itself runs on this machine, and returns their variables of config/. */
async function prepareMachine(context: StackContext, computers: boolean): Promise<Record<string, string>> {
  await prepareGit(context);
  if (!computers) return {};
  const environment = await prepareComputers(context);
  await prepareDesktops(context);
  await prepareBrowsers(context);
  return environment;
}

type Start = () => Promise<Started>;

/** A start that takes the place of the previous one when it is repeated. */
function again<T extends Omit<Started, 'environment'>>(
  start: (former?: T) => Promise<T>,
  toEnvironment: (part: T) => Record<string, string>,
  probe?: (address: string) => Promise<void>,
): Start {
  let former: T | undefined;
  return async () => {
    former = await start(former);
    const { service, address, openBecause } = former;
    return { service, address, openBecause, environment: toEnvironment(former), probe };
  };
}

/** Starts all in parallel. If one fails, waits for the others and stops them. */
async function startAll(starts: Start[]): Promise<[Started, Start][]> {
  const results = await Promise.allSettled(
    starts.map(async (start): Promise<[Started, Start]> => [await start(), start]),
  );
  const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failure = results.find((result) => result.status === 'rejected');
  if (failure === undefined) return started;
  await stopAll(started);
  throw failure.reason;
}

async function stopAll(started: [Started, Start][]): Promise<void> {
  for (const [{ service }] of started.toReversed()) await service.stop();
}

function running(
  started: [Started, Start][],
  { report, signal }: StackContext,
  further: Record<string, string>,
): Stack {
  let stopping: Promise<void> | undefined;
  let changed: () => void = () => undefined;
  const parts = started.map(([first, start]) => {
    const { probe } = first;
    return supervise(first, {
      start,
      report,
      signal,
      onRestart: () => changed(),
      probe: probe && (({ address }) => probe(address)),
    });
  });
  const stopParts = async () => {
    for (const part of parts.toReversed()) await part.stop();
  };
  return {
    environment: Object.assign({}, further, ...parts.map((part) => part.now().environment)) as Record<string, string>,
    parts: () =>
      parts.map((part) => {
        const { service, address, openBecause } = part.now();
        return { name: service.name, address, pid: service.pid, openBecause };
      }),
    failed: Promise.race(parts.map((part) => part.failed)),
    onRestart(listener) {
      changed = listener;
    },
    stop() {
      stopping ??= stopParts();
      return stopping;
    },
  };
}
