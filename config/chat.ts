import { z } from 'zod';
import { bool, integer } from './kinds.ts';

export const chatSettings = z.object({
  ATRIUM_STREAM_HEARTBEAT_SECONDS: integer(1, 60).default(15),
  ATRIUM_STREAM_CHECK_SECONDS: integer(1, 60).default(3),
  ATRIUM_TURN_LOG_RETENTION_DAYS: integer(1, 365).default(7),
  ATRIUM_API_CALLS_MODELS: bool.default(true),
  ATRIUM_MAX_STEPS_PER_TURN: integer(1, 1_000).default(100),
  ATRIUM_MAX_TOOL_CALLS_PER_TURN: integer(1, 10_000).default(1_000),
  ATRIUM_MAX_SECONDS_PER_TURN: integer(1, 604_800).default(14_400),
  ATRIUM_MAX_WAIT_SECONDS: integer(1, 2_592_000).default(604_800),
});

/** Turns and their limits. */
export function chatConfig(env: z.infer<typeof chatSettings>) {
  return Object.freeze({
    streams: Object.freeze({
      /** How often a silent stream sends a heartbeat. */
      heartbeatMs: env.ATRIUM_STREAM_HEARTBEAT_SECONDS * 1_000,
      /**
       * How often a stream's reader is checked. A session check is cached for a second, so a removed member reads on
       * for at most this plus a second.
       */
      authorizationMs: env.ATRIUM_STREAM_CHECK_SECONDS * 1_000,
    }),
    /** Whether an API without a worker makes the first model call of the turns that it accepts. */
    apiCallsModels: env.ATRIUM_API_CALLS_MODELS,
    turnLogRetentionDays: env.ATRIUM_TURN_LOG_RETENTION_DAYS,
    maxStepsPerTurn: env.ATRIUM_MAX_STEPS_PER_TURN,
    maxToolCallsPerTurn: env.ATRIUM_MAX_TOOL_CALLS_PER_TURN,
    /** Excludes the time in which the turn waits for its client or for approval. */
    maxWorkMsPerTurn: env.ATRIUM_MAX_SECONDS_PER_TURN * 1_000,
    /** How long a call waits at most for a client or a person. */
    maxWaitMs: env.ATRIUM_MAX_WAIT_SECONDS * 1_000,
  });
}
