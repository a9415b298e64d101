import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { driversOf } from './computers.ts';
import { imagesConfig } from './environments.ts';
import { type Environment, parseEnvironment } from './index.ts';

/**
 * What `atrium up` needs before the stack runs, when there is no full configuration yet: the data folder, which parts
 * are configured elsewhere, and where programs are found and kept. Throws a ConfigError for any wrong setting.
 */
export function loadLaunchConfig(environment: Environment = process.env) {
  const env = parseEnvironment(environment);
  const cacheHome = environment.XDG_CACHE_HOME || join(homedir(), '.cache');
  return Object.freeze({
    dataDir: resolve(env.ATRIUM_DATA_DIR),
    cacheDir: join(cacheHome, 'atrium'),
    http: Object.freeze({ host: env.ATRIUM_HOST, port: env.ATRIUM_PORT }),
    bucket: env.ATRIUM_S3_BUCKET,
    computers: env.ATRIUM_COMPUTERS === 'auto',
    computerDrivers: driversOf(env),
    images: imagesConfig(env),
    computersDrive: env.ATRIUM_COMPUTERS_DRIVE === 'auto',
    computersImageMiB: env.ATRIUM_COMPUTERS_IMAGE_MIB,
    computersDir: resolve(env.ATRIUM_COMPUTERS_DIR ?? join(env.ATRIUM_DATA_DIR, 'computers')),
    /** The parts to start. A part whose address is given is not started. */
    need: Object.freeze({
      database: env.ATRIUM_DATABASE_URL === undefined,
      temporal: env.ATRIUM_TEMPORAL_ADDRESS === undefined,
      storage: env.ATRIUM_S3_ENDPOINT === undefined && env.ATRIUM_S3_ACCESS_KEY_ID === undefined,
      // Only beside the embedded database: operators who bring their own server for one bring one for the other.
      tenantDatabase: env.ATRIUM_DATABASE_URL === undefined && env.ATRIUM_TENANT_DATABASE_URL === undefined,
    }),
    /** The environment itself, for the tools that a start runs and for the later configuration. */
    environment: Object.freeze({ ...environment }),
  });
}

export type LaunchConfig = ReturnType<typeof loadLaunchConfig>;
