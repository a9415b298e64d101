import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { hasDatabase } from '../databases/connections.ts';
import type { App } from './app.ts';
import { changesOf } from './changes.ts';
import { whyItWaits } from './versionRules.ts';

/** Said where a run is of the version in use, while what is in the app now is another one. */
export const waitsBeside = 'What was changed in the app since waits for approval; the version in use runs.';

/** Throws 409 `APP_VERSION_WAITS` while nobody with the rights for it has taken what is in the app into use. */
export function requireVersionInUse({
  versionId,
  manifest,
  treeWaits: isTreeWaiting,
}: Pick<App, 'versionId' | 'manifest' | 'treeWaits'>): void {
  if (isTreeWaiting) throw treeWaits();
  // What was there before there were versions runs until it is looked at.
  if (versionId !== null || manifest.components.length > 0) return;
  throw versionWaits(
    'No version of this app is in use yet: one waits for a person with the rights for it to approve it.',
  );
}

function treeWaits(): DomainError {
  return versionWaits('The working tree was changed by somebody who may not have it run. A person must approve it.');
}

function versionWaits(detail: string): DomainError {
  return new DomainError('conflict', 'APP_VERSION_WAITS', detail);
}

/**
 * The same for a run in the working tree of a repository, by who has changed that tree since the version was taken into
 * use: also where nobody could look at it, or its manifest is wrong.
 */
export async function requireTreeInUse(database: Database, app: App): Promise<void> {
  requireVersionInUse(app);
  const needing = { manifest: app.manifest, hasDatabase: await hasDatabase(database, app.id) };
  if (whyItWaits(await changesOf(database, app.id), needing).length > 0) throw treeWaits();
}
