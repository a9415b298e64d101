import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with a space's secrets. */
export const access = {
  listSecrets: 'viewer',
  getSecretsEnv: 'editor',
  setSecret: 'editor',
  deleteSecret: 'editor',
  storeDynamicSecret: 'viewer',
} as const satisfies AccessRows;
