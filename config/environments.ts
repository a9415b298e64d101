import { z } from 'zod';
import { integer } from './kinds.ts';

export const environmentSettings = z.object({
  ATRIUM_ENVIRONMENTS_PER_SPACE: integer(1, 10_000).default(20),
  ATRIUM_ENVIRONMENT_VERSIONS_PER_SPACE: integer(1, 100_000).default(200),
  ATRIUM_ENVIRONMENT_VERSIONS_KEPT: integer(1, 1_000).default(5),
  ATRIUM_ENVIRONMENT_STEP_MINUTES: integer(1, 1_440).default(30),
  ATRIUM_ENVIRONMENT_LAYER_DAYS: integer(1, 3_650).default(30),
});

const minuteMs = 60_000;
const dayMs = 86_400_000;

/** Numbers and time limits of environments. */
export function environmentsConfig(env: z.infer<typeof environmentSettings>) {
  return Object.freeze({
    perSpace: env.ATRIUM_ENVIRONMENTS_PER_SPACE,
    versionsPerSpace: env.ATRIUM_ENVIRONMENT_VERSIONS_PER_SPACE,
    /** How many ready versions of an environment are kept, beside those that computers use. */
    versionsKept: env.ATRIUM_ENVIRONMENT_VERSIONS_KEPT,
    stepMs: env.ATRIUM_ENVIRONMENT_STEP_MINUTES * minuteMs,
    /** How long the result of a step is kept that no build uses. */
    layerMs: env.ATRIUM_ENVIRONMENT_LAYER_DAYS * dayMs,
  });
}
