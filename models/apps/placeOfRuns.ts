import { DomainError } from '../../base/errors.ts';
import { type Actor, operator } from '../audit/audit.ts';
import { defaultComputer } from '../computers/defaultComputer.ts';
import { isOfEnvironment, type ServingDeps, servingComputer } from '../computers/servingComputer.ts';
import type { Database } from '../database/database.ts';
import { findRepository } from '../git/repository.ts';
import type { App } from './app.ts';
import type { AppComponent } from './manifest.ts';

/** Where an app's components run. */
export interface PlaceOfRuns {
  kind: 'folder' | 'repository';
  computerId: string;
  /** The folder with the app's files, below the computer's home. */
  folder: string;
}

type PlacedApp = Pick<App, 'itemId' | 'spaceId' | 'computerId'>;

/** A repository runs in its working tree. A folder's files are copied to the app's computer. */
export async function placeOfRuns(
  database: Database,
  { itemId, spaceId, computerId }: PlacedApp,
): Promise<PlaceOfRuns> {
  const repository = await findRepository(database, itemId);
  if (repository !== undefined) {
    return { kind: 'repository', computerId: repository.computerId, folder: repository.treePath };
  }
  const chosen = computerId ?? (await defaultComputer(database, spaceId)).id;
  return { kind: 'folder', computerId: chosen, folder: `apps/${itemId}` };
}

/**
 * Where a component runs. If it names an environment, that is on the app's computer if that is of the environment, or
 * else on the space's computer for it. Throws 409 `APP_ENVIRONMENT_UNKNOWN`, as `servingComputer`, and
 * `APP_ENVIRONMENT_MISMATCH` if the working tree of a repository is on a computer without the environment.
 */
export async function placeOfComponent(
  deps: ServingDeps,
  app: PlacedApp,
  { environment }: Pick<AppComponent, 'environment'>,
  actor: Actor = operator,
): Promise<PlaceOfRuns> {
  const { database } = deps;
  const place = await placeOfRuns(database, app);
  if (environment === undefined) return place;
  const { spaceId } = app;
  try {
    const isChosen = place.kind === 'repository' || app.computerId !== null;
    const { computerId } = place;
    if (isChosen && (await isOfEnvironment(database, { spaceId, computerId, environment }))) return place;
    if (place.kind === 'repository') throw mismatch(environment);
    return { ...place, computerId: (await servingComputer(deps, { spaceId, environment, actor })).id };
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'ENVIRONMENT_UNKNOWN') throw error;
    throw new DomainError('conflict', 'APP_ENVIRONMENT_UNKNOWN', error.message);
  }
}

function mismatch(environment: string): DomainError {
  const detail = `The manifest says environment: ${environment}, but the computer with the repository’s files has another system. Give it the environment, or move the files to a computer that has it.`;
  return new DomainError('conflict', 'APP_ENVIRONMENT_MISMATCH', detail);
}
