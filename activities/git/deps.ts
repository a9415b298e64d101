import type { GitMirrors } from '../../integrations/git/types.ts';
import type { GitCredentials } from '../../models/git/credentials.ts';
import type { CommonDeps } from '../deps.ts';

export interface GitDeps extends CommonDeps {
  gitMirrors: GitMirrors;
  gitCredentials: GitCredentials;
}
