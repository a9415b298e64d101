import type { AccessRows } from '../frame/auth/access.ts';

/** Who may do what with repositories: viewers look, editors change them. */
export const access = {
  listGitCredentials: 'viewer',
  addGitCredential: 'editor',
  removeGitCredential: 'editor',
  cloneRepository: 'editor',
  getRepository: 'viewer',
  updateRepository: 'editor',
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
  createDraft: 'editor',
  listDrafts: 'viewer',
  mergeDraft: 'editor',
  discardDraft: 'editor',
  syncInstallations: 'editor',
  syncGithubInstallations: 'editor',
  connectGithub: 'editor',
  // A browser comes back without a credential. Its token tells whose connection it is.
  finishGithubConnection: 'anyone',
  chooseGithubInstallation: 'anyone',
  receiveGithubEvent: 'signed',
} as const satisfies AccessRows;
