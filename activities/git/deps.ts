import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { GitTrees } from '../../integrations/git/treeTypes.ts';
import type { GitMirrors } from '../../integrations/git/types.ts';
import type { GitHosting } from '../../integrations/gitHosting/index.ts';
import type { GitCredentials } from '../../models/git/credentials.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { CommonDeps } from '../deps.ts';

export interface GitDeps extends CommonDeps {
  gitMirrors: GitMirrors;
  gitTrees: GitTrees;
  liveComputers: LiveComputers;
  gitCredentials: GitCredentials;
  gitHosting: GitHosting;
  identity: Pick<Identity, 'members' | 'keys'>;
}
