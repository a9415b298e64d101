import { DomainError, notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import type { DriveItem } from '../drive/driveItem.ts';
import { filesBelow } from '../drive/filesBelow.ts';
import { driveModels } from '../drive/models.ts';
import { getRepository, requireReady } from '../git/repository.ts';
import { type App, findApp } from './app.ts';
import { changesOf } from './changes.ts';
import {
  type ManifestProblem,
  type ManifestReader,
  type ManifestReading,
  type ManifestSource,
  manifestName,
  missingTag,
} from './manifest.ts';
import { refusedManifest } from './refusedManifest.ts';
import { considerContent, noteProblem } from './takeVersion.ts';
import type { AppFiles } from './version.ts';

interface Deps {
  database: Database;
  appManifests: ManifestReader;
}

/** Reads the manifest of an item that is, or will be, an app. Throws 409 if the item cannot be an app. */
async function readManifestOf(
  { database, appManifests }: Deps,
  item: DriveItem,
  signal: AbortSignal,
  knownTag?: string,
): Promise<ManifestReading> {
  const source = await sourceOf(database, item);
  if (source !== undefined) return appManifests.read(source, knownTag, signal);
  const detail = `The folder or repository has no file ${manifestName}.`;
  return { kind: 'refused', tag: missingTag, problem: { code: 'APP_MANIFEST_MISSING', detail, faults: [] } };
}

/** The name in the manifest of an item that will be an app. Throws 422 if the manifest cannot be used. */
export async function requireManifestOf(deps: Deps, item: DriveItem, signal: AbortSignal): Promise<string> {
  const reading = await readManifestOf(deps, item, signal);
  if (reading.kind === 'same') throw new Error('No tag was given.');
  if (reading.kind === 'refused') throw refusedManifest(reading.problem);
  if (item.kind === 'folder') await filesOfApp(deps.database, item.id);
  return reading.manifest.name;
}

/**
 * Returns the app after its present content was taken into use, or waits for approval. A folder is read only after a
 * change. A repository is read each time, because its working tree changes without our knowledge.
 */
export async function lookAtApp(deps: Deps, known: App, item: DriveItem, signal: AbortSignal): Promise<App> {
  const { database } = deps;
  const changes = await changesOf(database, known.id);
  // Read after the changes, because a concurrent look at those has changed this row too.
  const app = await findApp(database, known.id);
  if (app === undefined) throw notFound('app');
  const isChanged = changes.some(({ unseen }) => unseen !== null);
  if (item.kind === 'folder' && !isChanged) return app;
  const isRefused = app.treeWaits && app.waitingId === null;
  const mayBeSame = !isChanged && app.versionId !== null && !isRefused;
  const reading = await readManifestOf(deps, item, signal, mayBeSame ? app.manifestTag : undefined);
  if (reading.kind === 'same') return app;
  const { tag: manifestTag } = reading;
  if (reading.kind === 'refused') return noteProblem(database, app, { problem: reading.problem, manifestTag, changes });
  const files = item.kind === 'folder' ? await filesOrProblem(database, item.id) : null;
  if (files !== null && 'problem' in files) {
    return noteProblem(database, app, { problem: files.problem, manifestTag, changes });
  }
  const content = { manifest: reading.manifest, manifestTag, files: files === null ? null : files.files };
  return considerContent(database, app, { content, changes });
}

/** The files of a folder that is an app, as they are now. Throws 422 `APP_TOO_LARGE`. */
export async function filesOfApp(database: Database, itemId: string): Promise<AppFiles> {
  const { files } = await filesBelow(database, { itemId }, (most) => {
    const detail = `The folder of an app can have ${most}. Use a repository instead.`;
    return new DomainError('unprocessable', 'APP_TOO_LARGE', detail);
  });
  return Object.fromEntries(files);
}

async function filesOrProblem(
  database: Database,
  itemId: string,
): Promise<{ files: AppFiles } | { problem: ManifestProblem }> {
  try {
    return { files: await filesOfApp(database, itemId) };
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'APP_TOO_LARGE') throw error;
    return { problem: { code: 'APP_TOO_LARGE', detail: error.message, faults: [] } };
  }
}

async function sourceOf(database: Database, item: DriveItem): Promise<ManifestSource | undefined> {
  const { spaceId, id, kind } = item;
  if (kind === 'repository') {
    const repository = await getRepository(database, spaceId, id);
    requireReady(repository);
    const { computerId, treePath } = repository;
    return { in: 'computer', spaceId, computerId, folder: treePath, path: `${treePath}/${manifestName}` };
  }
  if (kind !== 'folder') {
    throw new DomainError('conflict', 'NOT_AN_APP', 'Only a folder or a repository can be an app.');
  }
  const file = await driveModels(database).DriveItem.childOf(id, manifestName);
  const content = file?.content;
  if (file === null || content === undefined) return undefined;
  const { objectKey, size } = content;
  return { in: 'folder', spaceId, objectKey, size, tag: content.sha256.toString('hex') };
}
