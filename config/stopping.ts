import { z } from 'zod';
import { integer } from './kinds.ts';

export const stoppingSettings = z.object({
  ATRIUM_DRAIN_SECONDS: integer(0, 600).optional(),
  ATRIUM_STOP_GRACE_SECONDS: integer(1, 86_400).optional(),
  ATRIUM_WORKER_HOST: z.string().min(1).default('127.0.0.1'),
  ATRIUM_WORKER_PORT: integer(0, 65_535).optional(),
});

/** How a process stops. Undefined values depend on its role. */
export function stoppingConfig(env: z.infer<typeof stoppingSettings>) {
  return Object.freeze({
    /** How long an API keeps answering after a stop is requested. */
    drainMs: milliseconds(env.ATRIUM_DRAIN_SECONDS),
    /** How long requests and a worker's activities may then take to end. */
    graceMs: milliseconds(env.ATRIUM_STOP_GRACE_SECONDS),
  });
}

/** Where a worker answers its operator's probes. Without a port it answers none. */
export function workerHttpConfig(env: z.infer<typeof stoppingSettings>) {
  return Object.freeze({ host: env.ATRIUM_WORKER_HOST, port: env.ATRIUM_WORKER_PORT });
}

function milliseconds(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1_000;
}
