import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with repositories: viewers look, editors change them. */
export const access = {
  listGitCredentials: 'viewer',
  addGitCredential: 'editor',
  removeGitCredential: 'editor',
  cloneRepository: 'editor',
  getRepository: 'viewer',
  retryClone: 'editor',
} as const satisfies AccessRows;
