import { DomainError } from '../errors.ts';
import type { App } from './app.ts';

/** Said where a run is of the version in use, while what is in the app now is another one. */
export const waitsBeside = 'What was changed in the app since waits for approval; the version in use runs.';

/** Throws 409 `APP_VERSION_WAITS` while nobody with the rights for it has taken what is in the app into use. */
export function requireVersionInUse({
  versionId,
  manifest,
  treeWaits,
}: Pick<App, 'versionId' | 'manifest' | 'treeWaits'>): void {
  if (treeWaits)
    throw versionWaits('The working tree was changed by who may not have it run. A person must approve it.');
  // What was there before there were versions runs until it is looked at.
  if (versionId !== null || manifest.components.length > 0) return;
  throw versionWaits(
    'No version of this app is in use yet: one waits for a person with the rights for it to approve it.',
  );
}

function versionWaits(detail: string): DomainError {
  return new DomainError('conflict', 'APP_VERSION_WAITS', detail);
}
