import { defaultComputer } from '../computers/defaultComputer.ts';
import type { Database } from '../database/database.ts';
import { findRepository } from '../git/repository.ts';
import type { App } from './app.ts';

/** Where an app's components run. */
export interface PlaceOfRuns {
  kind: 'folder' | 'repository';
  computerId: string;
  /** The folder with the app's files, below the computer's home. */
  folder: string;
}

/** A repository runs in its working tree. A folder's files are copied to the app's computer. */
export async function placeOfRuns(
  database: Database,
  { itemId, spaceId, computerId }: Pick<App, 'itemId' | 'spaceId' | 'computerId'>,
): Promise<PlaceOfRuns> {
  const repository = await findRepository(database, itemId);
  if (repository !== undefined) {
    return { kind: 'repository', computerId: repository.computerId, folder: repository.treePath };
  }
  const chosen = computerId ?? (await defaultComputer(database, spaceId)).id;
  return { kind: 'folder', computerId: chosen, folder: `apps/${itemId}` };
}
