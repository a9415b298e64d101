import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with repositories: viewers look, editors change them. */
export const access = {
  listGitCredentials: 'viewer',
  addGitCredential: 'editor',
  removeGitCredential: 'editor',
  cloneRepository: 'editor',
  getRepository: 'viewer',
  retryClone: 'editor',
  getRepositoryStatus: 'viewer',
  listRepositoryCommits: 'viewer',
  listRepositoryBranches: 'viewer',
  getRepositoryDiff: 'viewer',
  createBranch: 'editor',
  commitChanges: 'editor',
  checkoutBranch: 'editor',
  pushRepository: 'editor',
  pullRepository: 'editor',
} as const satisfies AccessRows;
