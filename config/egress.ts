import { z } from 'zod';
import { list } from './kinds.ts';

export const egressSettings = z.object({
  ATRIUM_EGRESS_ALLOW_INTERNAL: list
    .refine(
      (hosts) => hosts.every((host) => /^[^\s/]+(\/\d{1,3})?$/.test(host)),
      'hosts or networks, separated by commas',
    )
    .default([]),
});

export function egressConfig(env: z.infer<typeof egressSettings>) {
  return Object.freeze({
    /** Hosts and networks that users' requests may reach although they are internal. */
    allowInternal: env.ATRIUM_EGRESS_ALLOW_INTERNAL,
  });
}
