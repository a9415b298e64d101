import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { openLiving } from '../drive/changes.ts';
import { driveContainerId } from '../drive/containers.ts';
import { filesBelow } from '../drive/filesBelow.ts';
import { parsePath } from '../drive/names.ts';
import { findByPath } from '../drive/place.ts';
import type { CopiedFiles, EnvironmentStep } from './steps.ts';

/** By the `from` of each step that copies, the files as they are in the drive now. Throws 422, naming the step. */
export async function copiedFiles(
  database: Database,
  spaceId: string,
  steps: readonly EnvironmentStep[],
): Promise<Map<string, CopiedFiles>> {
  const found = new Map<string, CopiedFiles>();
  for (const [index, step] of steps.entries()) {
    if (!('copy' in step) || found.has(step.copy.from)) continue;
    found.set(step.copy.from, await filesOf(database, spaceId, step.copy.from, `/steps/${index}/copy/from`));
  }
  return found;
}

async function filesOf(database: Database, spaceId: string, from: string, pointer: string): Promise<CopiedFiles> {
  const { item } = (await find(database, spaceId, from)) ?? {};
  const refusal = (detail: string) =>
    new DomainError('unprocessable', 'ENVIRONMENT_FILE_UNKNOWN', `The environment cannot copy ${from}: ${detail}.`, {
      errors: [{ pointer, detail }],
    });
  if (item === undefined) throw refusal('there is no such file or folder in the drive');
  if (item.kind === 'folder') {
    const files = await filesBelow(database, { itemId: item.id }, (most) => refusal(`a folder can have ${most}`));
    return Object.fromEntries(files);
  }
  const { content } = item;
  if (content === undefined) throw refusal('it is neither a file nor a folder');
  return { [`./${item.name}`]: { objectKey: content.objectKey, sha256: content.sha256.toString('hex') } };
}

async function find(database: Database, spaceId: string, from: string) {
  try {
    if (!from.startsWith('itm_')) {
      return await findByPath(database, { spaceId, containerId: driveContainerId, names: parsePath(from) });
    }
    return await openLiving(database, spaceId, from);
  } catch (error) {
    if (error instanceof DomainError) return undefined;
    throw error;
  }
}

/** The path of a folder of the drive, for what a Dockerfile copies from there. Throws 422. */
export async function contextPath(database: Database, spaceId: string, folderId: string): Promise<string> {
  const found = await find(database, spaceId, folderId);
  if (found?.item.kind === 'folder') return found.place.path;
  const detail = 'is not a folder of the drive';
  throw new DomainError('unprocessable', 'ENVIRONMENT_FILE_UNKNOWN', 'The context of the build is not a folder.', {
    errors: [{ pointer: '/contextFolderId', detail }],
  });
}
