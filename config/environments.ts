import { z } from 'zod';
import { ConfigError } from './errors.ts';
import { integer, list } from './kinds.ts';

const registry = z
  .string()
  .max(255)
  .regex(/^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::\d{1,5})?$/, {
    error: 'hosts like registry.example.org or localhost:5000, separated by commas',
  });
const registries = list.pipe(z.array(registry).max(100));

export const environmentSettings = z.object({
  ATRIUM_ENVIRONMENTS_PER_SPACE: integer(1, 10_000).default(20),
  ATRIUM_ENVIRONMENT_VERSIONS_PER_SPACE: integer(1, 100_000).default(200),
  ATRIUM_ENVIRONMENT_VERSIONS_KEPT: integer(1, 1_000).default(5),
  ATRIUM_ENVIRONMENT_STEP_MINUTES: integer(1, 1_440).default(30),
  ATRIUM_ENVIRONMENT_LAYER_DAYS: integer(1, 3_650).default(30),
  ATRIUM_IMAGE_REGISTRIES: registries.optional(),
  ATRIUM_IMAGE_REGISTRIES_INSECURE: registries.optional(),
  ATRIUM_IMAGE_REGISTRY_AUTH_FILE: z.string().min(1).optional(),
  ATRIUM_IMAGE_MIB: integer(16, 1_000_000).default(8_192),
});

type EnvironmentVariables = z.infer<typeof environmentSettings>;

const minuteMs = 60_000;
const dayMs = 86_400_000;

/** Numbers and time limits of environments. */
export function environmentsConfig(env: EnvironmentVariables) {
  return Object.freeze({
    perSpace: env.ATRIUM_ENVIRONMENTS_PER_SPACE,
    versionsPerSpace: env.ATRIUM_ENVIRONMENT_VERSIONS_PER_SPACE,
    /** How many ready versions of an environment are kept, beside those that computers use. */
    versionsKept: env.ATRIUM_ENVIRONMENT_VERSIONS_KEPT,
    stepMs: env.ATRIUM_ENVIRONMENT_STEP_MINUTES * minuteMs,
    /** How long the result of a step is kept that no build uses. */
    layerMs: env.ATRIUM_ENVIRONMENT_LAYER_DAYS * dayMs,
    images: imagesConfig(env),
  });
}

/** Where environments may take images from. */
export function imagesConfig(env: EnvironmentVariables) {
  const allowed = env.ATRIUM_IMAGE_REGISTRIES ?? [];
  const insecure = env.ATRIUM_IMAGE_REGISTRIES_INSECURE ?? [];
  const others = insecure.filter((name) => !allowed.includes(name));
  if (others.length > 0) {
    throw new ConfigError(
      `ATRIUM_IMAGE_REGISTRIES_INSECURE names ${others.join(', ')}, which ATRIUM_IMAGE_REGISTRIES does not name.`,
    );
  }
  return Object.freeze({
    /** The registries that may be used. Empty: none. */
    registries: Object.freeze(allowed),
    /** Those that may be used over plain HTTP, or with a certificate that is not verified. */
    insecure: Object.freeze(insecure),
    /** A file with credentials, in the form of Docker's config.json. */
    authFile: env.ATRIUM_IMAGE_REGISTRY_AUTH_FILE,
    /** The most that an image may have, packed and unpacked together. */
    mostMiB: env.ATRIUM_IMAGE_MIB,
  });
}
