import { z } from 'zod';
import { requireSetting } from './errors.ts';
import { bool, integer, webAddress } from './kinds.ts';

export const temporalSettings = z.object({
  ATRIUM_TEMPORAL_ADDRESS: z.string().min(1).optional(),
  ATRIUM_TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  ATRIUM_TEMPORAL_API_KEY: z.string().min(1).optional(),
  ATRIUM_TEMPORAL_TLS: bool.default(false),
  ATRIUM_TEMPORAL_UI_URL: webAddress.optional(),
  ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: integer(2, 300).default(10),
  ATRIUM_MAX_HISTORY_EVENTS: integer(10, 40_000).default(4_000),
});

/** The workflow server. */
export function temporalConfig(env: z.infer<typeof temporalSettings>) {
  return Object.freeze({
    address: requireSetting('ATRIUM_TEMPORAL_ADDRESS', env.ATRIUM_TEMPORAL_ADDRESS),
    namespace: env.ATRIUM_TEMPORAL_NAMESPACE,
    apiKey: env.ATRIUM_TEMPORAL_API_KEY,
    tls: env.ATRIUM_TEMPORAL_TLS,
    uiUrl: env.ATRIUM_TEMPORAL_UI_URL,
    /** How long a worker may be silent before its work goes to another worker. */
    heartbeatTimeoutMs: env.ATRIUM_HEARTBEAT_TIMEOUT_SECONDS * 1_000,
    /** A long workflow continues with a new history after this many events. */
    maxHistoryEvents: env.ATRIUM_MAX_HISTORY_EVENTS,
  });
}
