import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { hasDatabase } from '../databases/connections.ts';
import type { App } from './app.ts';
import { changesOf } from './changes.ts';
import { whyItWaits } from './versionRules.ts';

/** The message of a run that uses the version in use while the app has newer content. */
export const waitsBeside = 'A later change of the app waits for approval, so the version in use runs.';

/** Throws 409 `APP_VERSION_WAITS` if no version is in use, or the working tree waits for approval. */
export function requireVersionInUse({
  versionId,
  manifest,
  treeWaits: isTreeWaiting,
}: Pick<App, 'versionId' | 'manifest' | 'treeWaits'>): void {
  if (isTreeWaiting) throw treeWaits();
  // Apps from before there were versions run until they are looked at.
  if (versionId !== null || manifest.components.length > 0) return;
  throw versionWaits(
    'No version of this app is in use yet. A person with the needed rights must approve the waiting version.',
  );
}

function treeWaits(): DomainError {
  return versionWaits(
    'The working tree was changed by a user who may not let it run. A person must approve the change.',
  );
}

function versionWaits(detail: string): DomainError {
  return new DomainError('conflict', 'APP_VERSION_WAITS', detail);
}

/**
 * Like `requireVersionInUse`, for a run in a repository's working tree. It also checks who has changed the tree since
 * the version was taken into use, even if the tree could not be looked at or its manifest is wrong.
 */
export async function requireTreeInUse(database: Database, app: App): Promise<void> {
  requireVersionInUse(app);
  const needing = { manifest: app.manifest, hasDatabase: await hasDatabase(database, app.id) };
  if (whyItWaits(await changesOf(database, app.id), needing).length > 0) throw treeWaits();
}
