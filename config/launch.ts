import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { driversOf } from './computers.ts';
import { type Environment, parseEnvironment } from './index.ts';

/**
 * What `atrium up` knows before the stack runs, and so before there is a whole configuration: where data go, which
 * parts are configured elsewhere, and where programs are looked for and kept. Throws a ConfigError for any wrong
 * setting.
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
    computersDir: resolve(env.ATRIUM_COMPUTERS_DIR ?? join(env.ATRIUM_DATA_DIR, 'computers')),
    /** An address that is given is never also started. */
    need: Object.freeze({
      database: env.ATRIUM_DATABASE_URL === undefined,
      temporal: env.ATRIUM_TEMPORAL_ADDRESS === undefined,
      storage: env.ATRIUM_S3_ENDPOINT === undefined && env.ATRIUM_S3_ACCESS_KEY_ID === undefined,
      // Only beside the embedded database: who brings a server for the one brings one for the other.
      tenantDatabase: env.ATRIUM_DATABASE_URL === undefined && env.ATRIUM_TENANT_DATABASE_URL === undefined,
    }),
    /** The environment itself, for the tools that a start runs and for the configuration that follows. */
    environment: Object.freeze({ ...environment }),
  });
}

export type LaunchConfig = ReturnType<typeof loadLaunchConfig>;
