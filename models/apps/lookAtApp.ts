import type { Database } from '../database.ts';
import type { DriveItem } from '../drive/driveItem.ts';
import { driveModels } from '../drive/models.ts';
import { DomainError } from '../errors.ts';
import { getRepository, requireReady } from '../git/repository.ts';
import { type App, noteManifest } from './app.ts';
import {
  type ManifestReader,
  type ManifestReading,
  type ManifestSource,
  manifestName,
  missingTag,
} from './manifest.ts';
import { refusedManifest } from './refusedManifest.ts';

interface Deps {
  database: Database;
  appManifests: ManifestReader;
}

/** Reads the manifest of an item that is, or is to be, an app. Throws 409 where the item can be none. */
async function readManifestOf(
  { database, appManifests }: Deps,
  item: DriveItem,
  signal: AbortSignal,
  knownTag?: string,
): Promise<ManifestReading> {
  const source = await sourceOf(database, item);
  if (source !== undefined) return appManifests.read(source, knownTag, signal);
  const detail = `There is no file ${manifestName} in it.`;
  return { kind: 'refused', tag: missingTag, problem: { code: 'APP_MANIFEST_MISSING', detail, faults: [] } };
}

/** The same of one that is to be an app. Throws 422 where its manifest cannot be used. */
export async function requireManifestOf(
  deps: Deps,
  item: DriveItem,
  signal: AbortSignal,
): Promise<Pick<App, 'manifest' | 'manifestTag'>> {
  const reading = await readManifestOf(deps, item, signal);
  if (reading.kind === 'same') throw new Error('No tag was given.');
  if (reading.kind === 'refused') throw refusedManifest(reading.problem);
  return { manifest: reading.manifest, manifestTag: reading.tag };
}

/** The app, with what its manifest says now. */
export async function lookAtApp(deps: Deps, app: App, item: DriveItem, signal: AbortSignal): Promise<App> {
  const reading = await readManifestOf(deps, item, signal, app.manifestTag);
  if (reading.kind === 'same') return app;
  const { tag: manifestTag } = reading;
  const now = {
    ...app,
    manifestTag,
    ...(reading.kind === 'read' ? { manifest: reading.manifest, problem: null } : { problem: reading.problem }),
  };
  await noteManifest(deps.database, now, app.manifestTag);
  return now;
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
