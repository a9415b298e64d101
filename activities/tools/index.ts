import type { AppManifests } from '../../integrations/apps/manifests.ts';
import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { GitTrees } from '../../integrations/git/treeTypes.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { completionOf } from '../../models/chat/turnContext.ts';
import type { Computers } from '../../models/computers/computers.ts';
import { standingOf } from '../../models/identity/authority.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { McpServers } from '../../models/mcp/mcpServers.ts';
import type { SecretStore } from '../../models/secrets/index.ts';
import type { CommonDeps } from '../deps.ts';
import { appTools } from './apps/index.ts';
import { automationTools } from './automations/index.ts';
import { browserTools } from './browsers/index.ts';
import { askUserTool } from './chat/askUser.ts';
import { clientToolSource, knownClientTools } from './chat/clientTools.ts';
import { computerTools } from './computers/index.ts';
import { type DatabaseToolDeps, databaseTools } from './databases/index.ts';
import { desktopTools } from './desktops/index.ts';
import { driveTools } from './drive/index.ts';
import { gitTools } from './git/index.ts';
import { mcpToolSource } from './mcp/mcp.ts';
import { ToolRegistry } from './registry.ts';
import { type WebFetchDeps, webFetchTool } from './web/webFetch.ts';

/** The dependencies of all tools. An area whose tools need more adds a field here. */
export interface ToolDeps
  extends WebFetchDeps,
    Pick<DatabaseToolDeps, 'spaceDatabases' | 'tenantServer'>,
    Pick<CommonDeps, 'config' | 'database' | 'logger' | 'workflows'> {
  storage: ObjectStore;
  mcpServers: McpServers;
  computers: Computers;
  liveComputers: LiveComputers;
  gitTrees: GitTrees;
  appManifests: AppManifests;
  identity: Pick<Identity, 'members' | 'keys' | 'users'>;
  secrets: Pick<SecretStore, 'redactors'>;
}

/** Creates all tools. A new area adds a file in this folder and a line here. */
export function createTools(deps: ToolDeps): ToolRegistry {
  return new ToolRegistry({
    tools: [
      ...driveTools(deps),
      ...computerTools(deps),
      ...desktopTools(deps),
      ...browserTools(deps),
      ...gitTools(deps),
      ...appTools(deps),
      ...automationTools(deps),
      ...databaseTools(deps),
      webFetchTool(deps),
      askUserTool,
    ],
    checked: knownClientTools,
    sources: [clientToolSource(deps.database), mcpToolSource(deps)],
    standingOf: (turn) => standingOf(deps.identity, turn),
    completionOf: (turn) => completionOf(deps.database, turn),
  });
}
