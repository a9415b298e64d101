import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import type { CommonDeps } from '../../deps.ts';
import type { Tool } from '../tool.ts';
import { driveChangeTools } from './change.ts';
import { driveReadTools } from './read.ts';
import { driveSearchTool } from './search.ts';
import { driveWriteTools } from './write.ts';

/** Tools over the space's drive and the files of a turn's own thread. */
export function driveTools(deps: Pick<CommonDeps, 'config' | 'database'> & { storage: ObjectStore }): Tool[] {
  return [...driveReadTools(deps), driveSearchTool(deps), ...driveWriteTools(deps), ...driveChangeTools(deps)];
}
