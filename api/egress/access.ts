import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what: the owner decides what agents can reach. */
export const access = {
  getEgress: 'viewer',
  putEgress: 'owner',
  listEgressLog: 'editor',
} as const satisfies AccessRows;
