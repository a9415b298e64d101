import { z } from 'zod';
import { billingConfig } from './billing.ts';

/**
 * Everything Atrium reads from its environment, validated once at start and frozen. No other file reads
 * `process.env` (lint keeps it so). `docs/configuration.md` has a row for each of these variables.
 */

const bool = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1');
const list = z.string().transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const integer = (min: number, max: number) => {
  const said = `a whole number from ${min} to ${max}`;
  return z.coerce.number(said).int(said).min(min, said).max(max, said);
};
const amounts = 'a number from 0 to 1000000000';
const amount = z.coerce.number(amounts).min(0, amounts).max(1_000_000_000, amounts);
const currencies = new Set(Intl.supportedValuesOf('currency').map((code) => code.toLowerCase()));

const masterKeyPattern = /^[A-Za-z0-9+/]{43}=$/;

const environmentSchema = z.object({
  ATRIUM_ENV: z.enum(['development', 'test', 'production']).default('development'),
  ATRIUM_INSTALLATION: z
    .string()
    .regex(/^[a-z0-9-]{1,40}$/, 'lower-case letters, digits and hyphens, at most 40')
    .default('atrium'),
  ATRIUM_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  ATRIUM_DATA_DIR: z.string().min(1).default('.atrium'),

  ATRIUM_HOST: z.string().min(1).default('127.0.0.1'),
  ATRIUM_PORT: integer(0, 65_535).default(8080),
  ATRIUM_PUBLIC_URL: z.url().optional(),
  ATRIUM_CORS_ORIGINS: list.default([]),
  ATRIUM_TRUST_PROXY: integer(0, 16).default(0),
  ATRIUM_METRICS_KEY: z.string().min(16).optional(),
  ATRIUM_RATE_LIMIT_PER_MINUTE: integer(0, 1_000_000).default(600),
  ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE: integer(0, 1_000_000).default(60),

  ATRIUM_DATABASE_URL: z.url({ protocol: /^mysql$/ }).optional(),
  ATRIUM_DATABASE_MIGRATION_URL: z.url({ protocol: /^mysql$/ }).optional(),
  ATRIUM_DATABASE_POOL_SIZE: integer(2, 500).default(20),
  ATRIUM_DATABASE_TIMEOUT_SECONDS: integer(5, 600).default(15),

  ATRIUM_TEMPORAL_ADDRESS: z.string().min(1).optional(),
  ATRIUM_TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  ATRIUM_TEMPORAL_API_KEY: z.string().min(1).optional(),
  ATRIUM_TEMPORAL_TLS: bool.default(false),
  ATRIUM_TEMPORAL_UI_URL: z.url().optional(),
  ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: integer(2, 300).default(10),
  ATRIUM_MAX_HISTORY_EVENTS: integer(10, 40_000).default(4_000),

  ATRIUM_S3_ENDPOINT: z.url().optional(),
  ATRIUM_S3_REGION: z.string().min(1).default('us-east-1'),
  ATRIUM_S3_BUCKET: z.string().min(3).max(63).default('atrium'),
  ATRIUM_S3_ACCESS_KEY_ID: z.string().min(1).optional(),
  ATRIUM_S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  ATRIUM_S3_PUBLIC_ENDPOINT: z.url().optional(),
  ATRIUM_S3_TIMEOUT_SECONDS: integer(1, 600).default(10),

  ATRIUM_DRIVE_QUOTA_MIB: integer(0, 1_000_000_000).default(51_200),
  ATRIUM_DRIVE_MAX_FILE_MIB: integer(1, 5_120).default(5_120),
  ATRIUM_DRIVE_KEPT_VERSIONS: integer(0, 1_000).default(10),
  ATRIUM_TRASH_RETENTION_DAYS: integer(1, 3_650).default(30),

  ATRIUM_MASTER_KEY: z
    .string()
    .regex(masterKeyPattern, '32 bytes in base64 (make one with: openssl rand -base64 32)')
    .optional(),

  ATRIUM_MASTER_KEY_OTHERS: list
    .refine(
      (keys) => keys.every((key) => masterKeyPattern.test(key)),
      'keys of 32 bytes in base64, separated by commas',
    )
    .default([]),
  ATRIUM_KMS_KEY_ID: z.string().min(1).max(240).optional(),
  ATRIUM_KMS_REGION: z.string().min(1).optional(),
  ATRIUM_KMS_ENDPOINT: z.url().optional(),

  ATRIUM_SIGN_UP: z.enum(['invited', 'open']).default('invited'),
  ATRIUM_SIGN_UP_DOMAINS: list.transform((domains) => domains.map((domain) => domain.toLowerCase())).default([]),
  ATRIUM_SIGN_IN_REDIRECTS: list
    .refine((urls) => urls.every((url) => URL.canParse(url) && !url.includes('#')), 'whole URLs, separated by commas')
    .default([]),
  ATRIUM_OIDC_ISSUER: z.url().optional(),
  ATRIUM_OIDC_CLIENT_ID: z.string().min(1).optional(),
  ATRIUM_OIDC_CLIENT_SECRET: z.string().min(1).optional(),
  ATRIUM_OIDC_NAME: z.string().min(1).max(60).default('single sign-on'),
  ATRIUM_OIDC_SCOPES: z.string().min(1).default('openid email profile'),
  ATRIUM_OIDC_TRUST_EMAIL: bool.default(false),
  ATRIUM_SMTP_URL: z.url({ protocol: /^smtps?$/ }).optional(),
  ATRIUM_SMTP_FROM: z.string().min(3).max(320).optional(),

  ATRIUM_OPENAI_API_KEY: z.string().min(1).optional(),
  ATRIUM_OPENAI_BASE_URL: z.url().optional(),
  ATRIUM_ANTHROPIC_API_KEY: z.string().min(1).optional(),
  ATRIUM_ANTHROPIC_BASE_URL: z.url().optional(),
  ATRIUM_COMPATIBLE_BASE_URL: z.url().optional(),
  ATRIUM_COMPATIBLE_API_KEY: z.string().min(1).optional(),
  ATRIUM_COMPATIBLE_NAME: z.string().min(1).max(60).default('compatible'),
  ATRIUM_COMPATIBLE_MODELS: list.default([]),
  ATRIUM_MODELS_FILE: z.string().min(1).optional(),
  ATRIUM_DEFAULT_MODEL: z.string().min(1).optional(),
  ATRIUM_DEMO_MODEL: bool.default(false),
  ATRIUM_TITLE_MODEL: z.string().min(1).default('auto'),
  ATRIUM_MODEL_IDLE_TIMEOUT_SECONDS: integer(1, 3_600).default(60),

  ATRIUM_PAYMENTS: z.enum(['stripe', 'development', 'none']).optional(),
  ATRIUM_STRIPE_SECRET_KEY: z.string().min(1).optional(),
  ATRIUM_STRIPE_WEBHOOK_SECRETS: list.default([]),
  ATRIUM_STRIPE_ADDRESS: z.url().optional(),
  ATRIUM_BILLING_ENFORCED: bool.optional(),
  ATRIUM_BILLING_CURRENCY: z
    .string()
    .refine((code) => currencies.has(code), 'a currency of ISO 4217 in lower-case letters, such as usd')
    .default('usd'),
  ATRIUM_BILLING_CREDITS_PER_UNIT: integer(1, 1_000_000).default(100),
  ATRIUM_BILLING_TOP_UP_MIN: amount.default(5),
  ATRIUM_BILLING_TOP_UP_MAX: amount.default(1_000),
  ATRIUM_BILLING_INITIAL_CREDITS_MAX: amount.optional(),
  ATRIUM_BILLING_INITIAL_CREDITS_PER_USER: amount.default(5_000),
  ATRIUM_BILLING_INITIAL_CREDITS_TOTAL: amount.default(1_000_000),
  ATRIUM_BILLING_LOW_CREDITS: amount.default(100),
  ATRIUM_BILLING_COMPUTER_CREDITS_PER_MINUTE: amount.default(0),
  ATRIUM_BILLING_STORAGE_CREDITS_PER_GIB_DAY: amount.default(0),
  ATRIUM_BILLING_CHECKOUT_LOOK_SECONDS: integer(1, 3_600).default(60),
  ATRIUM_BILLING_RECONCILE_MINUTES: integer(1, 1_440).default(60),

  ATRIUM_PUSH_CONTACT: z.union([z.email(), z.url({ protocol: /^https$/ })]).optional(),

  ATRIUM_SWEEP_INTERVAL_SECONDS: integer(1, 3_600).default(30),
  ATRIUM_SWEEP_GRACE_SECONDS: integer(1, 3_600).default(5),
  ATRIUM_TURN_LOG_RETENTION_DAYS: integer(1, 365).default(7),
  ATRIUM_MAX_STEPS_PER_TURN: integer(1, 1_000).default(100),
  ATRIUM_EGRESS_ALLOW_INTERNAL: list
    .refine(
      (hosts) => hosts.every((host) => /^[^\s/]+(\/\d{1,3})?$/.test(host)),
      'hosts or networks, separated by commas',
    )
    .default([]),
  ATRIUM_MAX_TOOL_CALLS_PER_TURN: integer(1, 10_000).default(1_000),
  ATRIUM_MAX_SECONDS_PER_TURN: integer(1, 604_800).default(14_400),
  ATRIUM_MAX_WAIT_SECONDS: integer(1, 2_592_000).default(604_800),
});

/** Every variable there is; a name that is not among them is ignored, which `atrium doctor` points out. */
export const settingNames: readonly string[] = Object.keys(environmentSchema.shape);

export type Environment = Record<string, string | undefined>;

/** A wrong setting, said in one line that names the variable. `atrium` prints it and exits with 1. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

function requireSetting(name: string, value: string | undefined): string {
  if (value === undefined) {
    throw new ConfigError(`${name} is not set. Set it, or run "npm start", which brings its own.`);
  }
  return value;
}

/** A setting that another one is of no use without. */
function requireBeside(other: string, name: string, value: string | undefined): string {
  if (value === undefined) throw new ConfigError(`${name} is not set, and ${other} needs it.`);
  return value;
}

/** Apple's service refuses a push whose contact is no https or mailto address. */
function pushSubject(contact: string | undefined, publicUrl: string): string {
  if (contact?.startsWith('https:')) return contact;
  if (contact !== undefined) return `mailto:${contact}`;
  return publicUrl.startsWith('https:') ? publicUrl : 'mailto:nobody@localhost';
}

function oidcSettings(env: z.infer<typeof environmentSchema>) {
  const { ATRIUM_OIDC_ISSUER: issuer, ATRIUM_OIDC_CLIENT_SECRET: clientSecret } = env;
  if (issuer === undefined) return undefined;
  const clientId = requireBeside('ATRIUM_OIDC_ISSUER', 'ATRIUM_OIDC_CLIENT_ID', env.ATRIUM_OIDC_CLIENT_ID);
  return Object.freeze({
    issuer,
    clientId,
    clientSecret,
    name: env.ATRIUM_OIDC_NAME,
    scopes: env.ATRIUM_OIDC_SCOPES,
    /** Believe an address of which the issuer does not say whether it is verified. */
    trustEmail: env.ATRIUM_OIDC_TRUST_EMAIL,
  });
}

/** The environment as typed settings, with the defaults; what a process needs beyond them is `loadConfig`'s to ask for. */
export function parseEnvironment(environment: Environment) {
  // An empty variable means "not set": compose files and shells make them easily.
  const present = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== '' && value !== undefined),
  );
  const result = environmentSchema.safeParse(present);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new ConfigError(`${issue?.path.join('.') ?? 'The environment'} is not right: ${issue?.message ?? 'unknown'}.`);
}

/** The frozen configuration. Throws {@link ConfigError} with one line when a setting is wrong or missing. */
export function loadConfig(environment: Environment = process.env) {
  const env = parseEnvironment(environment);
  const billing = billingConfig(env);
  if (billing.mode === 'stripe') {
    requireBeside('ATRIUM_PAYMENTS=stripe', 'ATRIUM_STRIPE_SECRET_KEY', env.ATRIUM_STRIPE_SECRET_KEY);
    if (billing.stripe.webhookSecrets.length === 0) {
      throw new ConfigError('ATRIUM_STRIPE_WEBHOOK_SECRETS is not set: without it no payment is ever credited.');
    }
  }
  if (billing.topUp.min > billing.topUp.max) {
    throw new ConfigError('ATRIUM_BILLING_TOP_UP_MIN is more than ATRIUM_BILLING_TOP_UP_MAX: nothing could be bought.');
  }
  const publicUrl = env.ATRIUM_PUBLIC_URL ?? `http://localhost:${env.ATRIUM_PORT}`;
  return Object.freeze({
    env: env.ATRIUM_ENV,
    installation: env.ATRIUM_INSTALLATION,
    logLevel: env.ATRIUM_LOG_LEVEL,
    dataDir: env.ATRIUM_DATA_DIR,
    http: Object.freeze({
      host: env.ATRIUM_HOST,
      port: env.ATRIUM_PORT,
      publicUrl,
      corsOrigins: env.ATRIUM_CORS_ORIGINS,
      /** How many reverse proxies stand in front, whose X-Forwarded-For is believed. */
      trustedProxies: env.ATRIUM_TRUST_PROXY,
      /** Lets its bearer read /metrics from elsewhere than loopback. */
      metricsKey: env.ATRIUM_METRICS_KEY,
      /** Requests a minute for one signed-in caller; 0 turns the limit off. */
      rateLimitPerMinute: env.ATRIUM_RATE_LIMIT_PER_MINUTE,
      /** Requests a minute for one address without a credential (sign-in, codes); 0 turns the limit off. */
      anonymousRateLimitPerMinute: env.ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE,
    }),
    database: Object.freeze({
      url: requireSetting('ATRIUM_DATABASE_URL', env.ATRIUM_DATABASE_URL),
      poolSize: env.ATRIUM_DATABASE_POOL_SIZE,
      /** How long the server may say nothing to a statement before its connection is given up. */
      silenceMs: env.ATRIUM_DATABASE_TIMEOUT_SECONDS * 1_000,
    }),
    migration: Object.freeze({
      /** The same database as an account that may change tables, where the running product's may not. */
      databaseUrl: env.ATRIUM_DATABASE_MIGRATION_URL ?? env.ATRIUM_DATABASE_URL,
    }),
    temporal: Object.freeze({
      address: requireSetting('ATRIUM_TEMPORAL_ADDRESS', env.ATRIUM_TEMPORAL_ADDRESS),
      namespace: env.ATRIUM_TEMPORAL_NAMESPACE,
      apiKey: env.ATRIUM_TEMPORAL_API_KEY,
      tls: env.ATRIUM_TEMPORAL_TLS,
      uiUrl: env.ATRIUM_TEMPORAL_UI_URL,
      /** How long a worker may be silent before its work is given to another. */
      heartbeatTimeoutMs: env.ATRIUM_HEARTBEAT_TIMEOUT_SECONDS * 1_000,
      /** After which a workflow that may be long goes on with a new history. */
      maxHistoryEvents: env.ATRIUM_MAX_HISTORY_EVENTS,
    }),
    storage: Object.freeze({
      /** Absent means AWS itself. */
      endpoint: env.ATRIUM_S3_ENDPOINT,
      region: env.ATRIUM_S3_REGION,
      bucket: env.ATRIUM_S3_BUCKET,
      accessKeyId: env.ATRIUM_S3_ACCESS_KEY_ID,
      secretAccessKey: env.ATRIUM_S3_SECRET_ACCESS_KEY,
      /** Where clients reach the store, for the links that they are given; absent means `endpoint`. */
      publicEndpoint: env.ATRIUM_S3_PUBLIC_ENDPOINT,
      /** How long the store may say nothing, or take nothing, before a request is given up. */
      silenceMs: env.ATRIUM_S3_TIMEOUT_SECONDS * 1_000,
    }),
    drive: Object.freeze({
      /** Of one space; 0 means no quota. */
      quotaBytes: env.ATRIUM_DRIVE_QUOTA_MIB * 1_048_576,
      maxFileBytes: env.ATRIUM_DRIVE_MAX_FILE_MIB * 1_048_576,
      /** How many earlier contents of a file stay. */
      keptVersions: env.ATRIUM_DRIVE_KEPT_VERSIONS,
      trashRetentionDays: env.ATRIUM_TRASH_RETENTION_DAYS,
    }),
    /** 32 bytes in base64; absent means the file `master.key` in the data directory. */
    masterKey: env.ATRIUM_MASTER_KEY,
    /** Further master keys that open what they have sealed, and seal nothing. */
    otherMasterKeys: env.ATRIUM_MASTER_KEY_OTHERS,
    /** AWS KMS instead of a master key of our own, where `keyId` is set. */
    kms: Object.freeze({
      keyId: env.ATRIUM_KMS_KEY_ID,
      region: env.ATRIUM_KMS_REGION,
      endpoint: env.ATRIUM_KMS_ENDPOINT,
    }),
    signIn: Object.freeze({
      /** Whether somebody whom nobody has invited gets an account by signing in. */
      signUp: env.ATRIUM_SIGN_UP,
      /** Whoever proves an address in one of these domains gets an account, too. */
      signUpDomains: env.ATRIUM_SIGN_UP_DOMAINS,
      /** Where the sign-in page may send a code: whole URLs. */
      redirects: env.ATRIUM_SIGN_IN_REDIRECTS,
      oidc: oidcSettings(env),
      mail:
        env.ATRIUM_SMTP_URL === undefined
          ? undefined
          : Object.freeze({
              smtpUrl: env.ATRIUM_SMTP_URL,
              from: requireBeside('ATRIUM_SMTP_URL', 'ATRIUM_SMTP_FROM', env.ATRIUM_SMTP_FROM),
            }),
    }),
    llm: Object.freeze({
      openai: { apiKey: env.ATRIUM_OPENAI_API_KEY, baseUrl: env.ATRIUM_OPENAI_BASE_URL },
      anthropic: { apiKey: env.ATRIUM_ANTHROPIC_API_KEY, baseUrl: env.ATRIUM_ANTHROPIC_BASE_URL },
      compatible: {
        name: env.ATRIUM_COMPATIBLE_NAME,
        apiKey: env.ATRIUM_COMPATIBLE_API_KEY,
        baseUrl: env.ATRIUM_COMPATIBLE_BASE_URL,
        /** The server's models by name, for one that needs no models file. */
        modelIds: env.ATRIUM_COMPATIBLE_MODELS,
      },
      modelsFile: env.ATRIUM_MODELS_FILE,
      defaultModelId: env.ATRIUM_DEFAULT_MODEL,
      /** List the demo model beside real ones; without any, it is there anyway. */
      demoModel: env.ATRIUM_DEMO_MODEL,
      /** Names new threads: `auto`, `off`, or an id of the catalogue. */
      titleModel: env.ATRIUM_TITLE_MODEL,
      /** How long a provider may be silent within one call. */
      idleTimeoutMs: env.ATRIUM_MODEL_IDLE_TIMEOUT_SECONDS * 1000,
    }),
    billing,
    push: Object.freeze({
      /** Whom push services may turn to about what comes from here (RFC 8292 §2.1). */
      subject: pushSubject(env.ATRIUM_PUSH_CONTACT, publicUrl),
    }),
    sweeper: Object.freeze({
      intervalSeconds: env.ATRIUM_SWEEP_INTERVAL_SECONDS,
      /** How old a row must be before the sweeper looks for its workflow. */
      graceSeconds: env.ATRIUM_SWEEP_GRACE_SECONDS,
    }),
    egress: Object.freeze({
      /** Hosts and networks that users' requests may reach although they are internal. */
      allowInternal: env.ATRIUM_EGRESS_ALLOW_INTERNAL,
    }),
    chat: Object.freeze({
      turnLogRetentionDays: env.ATRIUM_TURN_LOG_RETENTION_DAYS,
      maxStepsPerTurn: env.ATRIUM_MAX_STEPS_PER_TURN,
      maxToolCallsPerTurn: env.ATRIUM_MAX_TOOL_CALLS_PER_TURN,
      /** Without the time in which it waits for its client or for leave. */
      maxWorkMsPerTurn: env.ATRIUM_MAX_SECONDS_PER_TURN * 1_000,
      /** How long a call waits for a client or a person at most. */
      maxWaitMs: env.ATRIUM_MAX_WAIT_SECONDS * 1_000,
    }),
  });
}

export type Config = ReturnType<typeof loadConfig>;
