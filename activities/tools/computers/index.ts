import type { Tool } from '../tool.ts';
import { environmentTools } from './environments.ts';
import { execTool } from './exec.ts';
import { computerFileTools } from './files.ts';
import type { ComputerToolDeps } from './place.ts';
import { processTool } from './process.ts';
import { searchTool } from './search.ts';
import { computerSnapshotTools } from './snapshots.ts';

/** Tools over the space’s computers. */
export function computerTools(deps: ComputerToolDeps): Tool[] {
  return [
    execTool(deps),
    processTool(deps),
    ...computerFileTools(deps),
    searchTool(deps),
    ...computerSnapshotTools(deps),
    ...environmentTools(deps),
  ];
}
