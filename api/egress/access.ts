import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what: what agents reach is the owner's to say. */
export const access = {
  getEgress: 'viewer',
  putEgress: 'owner',
  listEgressLog: 'editor',
} as const satisfies AccessRows;
