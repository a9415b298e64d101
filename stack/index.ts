import { resolve } from 'node:path';
import type { Environment } from '../config/index.ts';
import type { Durability, StackContext } from './context.ts';
import { prepareDataDir, prepareServicesDir } from './folders.ts';
import { getMariaDb, startMariaDb } from './mariadb.ts';
import { startObjectStore } from './objectStore.ts';
import { getTemporal, getVersitygw } from './programs.ts';
import type { Report } from './report.ts';
import type { Service } from './services.ts';
import { startTemporalServer } from './temporalServer.ts';

export interface StackOptions {
  dataDir: string;
  /** Which parts to run: those for which no address is configured. */
  need: { database: boolean; temporal: boolean; storage: boolean };
  cacheDir: string;
  environment: Environment;
  ports?: 'usual' | 'free';
  bucket?: string;
  furtherDatabases?: string[];
  durability?: Durability;
  report?: Report;
  signal?: AbortSignal;
}

export interface Part {
  name: string;
  address: string;
  pid: number;
  /** Why other users of this machine can use it, where they can. */
  openBecause?: string | undefined;
}

export interface Stack {
  /** The variables of config/ that name what was started. */
  environment: Record<string, string>;
  parts: Part[];
  /** Settles with a line for a person when one of them ends though nobody has asked it to. */
  failed: Promise<string>;
  /** Stops the parts: first what writes to the others, the database last. */
  stop(): Promise<void>;
}

interface Started {
  service: Service;
  address: string;
  openBecause?: string | undefined;
  environment: Record<string, string>;
}

/**
 * Gets and starts the parts that are needed on this machine, on loopback only. When it throws, or the signal is aborted, nothing that it
 * started is left running. The caller holds the data directory's lock.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const dataDir = resolve(options.dataDir);
  prepareDataDir(dataDir);
  const context: StackContext = {
    dataDir,
    servicesDir: prepareServicesDir(dataDir),
    cacheDir: resolve(options.cacheDir),
    environment: options.environment,
    ports: options.ports ?? 'usual',
    bucket: options.bucket ?? 'atrium',
    furtherDatabases: options.furtherDatabases,
    durability: options.durability,
    report: options.report ?? (() => undefined),
    signal: options.signal ?? new AbortController().signal,
  };

  // Programs one after the other: each build uses all cores. Starts at once: each mostly waits.
  const starts: (() => Promise<Started>)[] = [];
  if (options.need.database) {
    const programs = await getMariaDb(context);
    starts.push(async () => {
      const { service, address, url, ownerUrl } = await startMariaDb(context, programs);
      const environment = { ATRIUM_DATABASE_URL: url, ATRIUM_DATABASE_MIGRATION_URL: ownerUrl };
      return { service, address, environment };
    });
  }
  if (options.need.temporal) {
    const program = await getTemporal(context);
    starts.push(async () => {
      const { service, address, uiUrl, openBecause } = await startTemporalServer(context, program);
      const ui = uiUrl !== undefined && { ATRIUM_TEMPORAL_UI_URL: uiUrl };
      return { service, address, openBecause, environment: { ATRIUM_TEMPORAL_ADDRESS: address, ...ui } };
    });
  }
  if (options.need.storage) {
    const program = await getVersitygw(context);
    starts.push(async () => {
      const store = await startObjectStore(context, program);
      return {
        service: store.service,
        address: store.address,
        environment: {
          ATRIUM_S3_ENDPOINT: store.endpoint,
          ATRIUM_S3_REGION: store.region,
          ATRIUM_S3_BUCKET: context.bucket,
          ATRIUM_S3_ACCESS_KEY_ID: store.accessKeyId,
          ATRIUM_S3_SECRET_ACCESS_KEY: store.secretAccessKey,
        },
      };
    });
  }
  return running(await startAll(starts));
}

/** Starts all at once; when one fails, waits for the others and stops them. */
async function startAll(starts: (() => Promise<Started>)[]): Promise<Started[]> {
  const results = await Promise.allSettled(starts.map((start) => start()));
  const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failure = results.find((result) => result.status === 'rejected');
  if (failure === undefined) return started;
  await stopAll(started);
  throw failure.reason;
}

async function stopAll(started: Started[]): Promise<void> {
  for (const { service } of started.toReversed()) await service.stop();
}

function running(started: Started[]): Stack {
  let stopping: Promise<void> | undefined;
  const failed = new Promise<string>((resolve) => {
    for (const { service } of started) {
      void service.exited.then(() => stopping === undefined && resolve(service.describeEnd()));
    }
  });
  return {
    environment: Object.assign({}, ...started.map((part) => part.environment)) as Record<string, string>,
    parts: started.map(({ service, address, openBecause }) => ({
      name: service.name,
      address,
      pid: service.pid,
      openBecause,
    })),
    failed,
    stop() {
      stopping ??= stopAll(started);
      return stopping;
    },
  };
}
