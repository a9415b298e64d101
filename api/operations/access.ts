import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what: an operation is its caller's own. */
export const access = {
  getOperation: 'self',
  cancelOperation: 'self',
} as const satisfies AccessRows;
