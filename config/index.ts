import { z } from 'zod';
import { appSettings, appsConfig } from './apps.ts';
import { automationSettings, automationsConfig } from './automations.ts';
import { backupConfig, backupSettings } from './backup.ts';
import { billingConfig, billingSettings } from './billing.ts';
import { browserSettings, browsersConfig } from './browsers.ts';
import { chatConfig, chatSettings } from './chat.ts';
import { computerSettings, computersConfig } from './computers.ts';
import { databaseConfig, databaseSettings, migrationConfig } from './database.ts';
import { databasesConfig, databasesSettings } from './databases.ts';
import { desktopSettings, desktopsConfig } from './desktops.ts';
import { driveConfig, driveSettings } from './drive.ts';
import { egressConfig, egressSettings } from './egress.ts';
import { environmentSettings, environmentsConfig } from './environments.ts';
import { ConfigError } from './errors.ts';
import { gitConfig, gitSettings } from './git.ts';
import { gitHostingConfig, gitHostingSettings } from './gitHosting.ts';
import { httpConfig, httpSettings } from './http.ts';
import { keysConfig, keysSettings } from './keys.ts';
import { describeAllowed } from './kinds.ts';
import { llmConfig, llmSettings } from './llm.ts';
import { nearestOf } from './nearest.ts';
import { portsConfig, portsSettings } from './ports.ts';
import { pushConfig, pushSettings } from './push.ts';
import { readerSettings, readersConfig } from './readers.ts';
import { redisConfig, redisSettings } from './redis.ts';
import { signInConfig, signInSettings } from './signIn.ts';
import { stoppingConfig, stoppingSettings, workerHttpConfig } from './stopping.ts';
import { storageConfig, storageSettings } from './storage.ts';
import { sweeperConfig, sweeperSettings } from './sweeper.ts';
import { temporalConfig, temporalSettings } from './temporal.ts';
import { webhookSettings, webhooksConfig } from './webhooks.ts';

export { ConfigError };

/**
 * Everything Atrium reads from its environment, validated and frozen once at the start. No other file reads
 * `process.env` (lint enforces this). An area has a file here, a line in each of the two lists below, and a row in
 * `docs/configuration.md` for each variable.
 */
const environmentSchema = z.object({
  ATRIUM_ENV: z.enum(['development', 'test', 'production']).default('development'),
  ATRIUM_INSTALLATION: z
    .string()
    .regex(/^[a-z0-9-]{1,40}$/, 'lower-case letters, digits and hyphens, at most 40')
    .default('atrium'),
  ATRIUM_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  ATRIUM_DATA_DIR: z.string().min(1).default('.atrium'),
  ...httpSettings.shape,
  ...stoppingSettings.shape,
  ...databaseSettings.shape,
  ...temporalSettings.shape,
  ...storageSettings.shape,
  ...driveSettings.shape,
  ...keysSettings.shape,
  ...signInSettings.shape,
  ...llmSettings.shape,
  ...billingSettings.shape,
  ...pushSettings.shape,
  ...sweeperSettings.shape,
  ...egressSettings.shape,
  ...readerSettings.shape,
  ...gitSettings.shape,
  ...gitHostingSettings.shape,
  ...chatSettings.shape,
  ...automationSettings.shape,
  ...webhookSettings.shape,
  ...appSettings.shape,
  ...databasesSettings.shape,
  ...computerSettings.shape,
  ...environmentSettings.shape,
  ...desktopSettings.shape,
  ...portsSettings.shape,
  ...browserSettings.shape,
  ...redisSettings.shape,
  ...backupSettings.shape,
});

/** Every known variable. `unknownSettings` finds others, which are ignored. */
export const settingNames: readonly string[] = Object.keys(environmentSchema.shape);

/** Variables that the docs give to clients. They may be set where Atrium runs, which ignores them. */
export const clientNames: readonly string[] = ['ATRIUM_API_KEY'];

export type Environment = Record<string, string | undefined>;

/**
 * Variables that are named like settings but unknown, each with the setting that was probably meant. A start only warns
 * of them: programs that share the environment may use such names.
 */
export function unknownSettings(environment: Environment = process.env): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith('ATRIUM_') && !settingNames.includes(name) && !clientNames.includes(name))
    .map((name) => {
      const nearest = nearestOf(name, settingNames);
      return nearest === undefined ? name : `${name} (${nearest} is meant?)`;
    });
}

/** The environment as typed settings with their defaults. `loadConfig` requires what a process needs beyond them. */
export function parseEnvironment(environment: Environment) {
  // An empty variable means "not set": compose files and shells make them easily.
  const present = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== '' && value !== undefined),
  );
  const result = environmentSchema.safeParse(present, { error: describeAllowed });
  if (result.success) return result.data;
  const faults = new Map<PropertyKey, string>();
  for (const { path, message } of result.error.issues) {
    const [name = 'The environment'] = path;
    if (!faults.has(name)) faults.set(name, `${String(name)} is not right: ${message}.`);
  }
  throw new ConfigError([...faults.values()].join('\n'));
}

/**
 * The frozen configuration. Throws {@link ConfigError} with a line for each wrong setting, or with one line when the
 * settings do not fit together.
 */
export function loadConfig(environment: Environment = process.env) {
  const env = parseEnvironment(environment);
  const http = httpConfig(env, { isDevelopment: env.ATRIUM_ENV === 'development' });
  return Object.freeze({
    env: env.ATRIUM_ENV,
    installation: env.ATRIUM_INSTALLATION,
    logLevel: env.ATRIUM_LOG_LEVEL,
    dataDir: env.ATRIUM_DATA_DIR,
    http,
    stopping: stoppingConfig(env),
    workerHttp: workerHttpConfig(env),
    ...keysConfig(env),
    push: pushConfig(env, http.publicUrl),
    database: databaseConfig(env),
    migration: migrationConfig(env),
    temporal: temporalConfig(env),
    storage: storageConfig(env),
    drive: driveConfig(env),
    signIn: signInConfig(env),
    llm: llmConfig(env),
    billing: billingConfig(env),
    sweeper: sweeperConfig(env),
    egress: egressConfig(env),
    readers: readersConfig(env),
    git: gitConfig(env),
    gitHosting: gitHostingConfig(env),
    chat: chatConfig(env),
    automations: automationsConfig(env),
    webhooks: webhooksConfig(env),
    apps: appsConfig(env),
    databases: databasesConfig(env),
    computers: computersConfig(env),
    environments: environmentsConfig(env),
    browsers: browsersConfig(env),
    desktops: desktopsConfig(env),
    ports: portsConfig(env, http.publicUrl),
    redis: redisConfig(env),
    backup: backupConfig(env),
  });
}

export type Config = ReturnType<typeof loadConfig>;
