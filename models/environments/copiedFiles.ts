import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { openLiving } from '../drive/changes.ts';
import { driveContainerId } from '../drive/containers.ts';
import { type Copied, excessOf, filesBelow } from '../drive/filesBelow.ts';
import { parsePath } from '../drive/names.ts';
import { findByPath } from '../drive/place.ts';
import type { CopiedFiles, EnvironmentStep } from './steps.ts';

/** What all steps of a definition copy together, each step for itself: a build and its rows are bounded by it. */
const most: Copied = { files: 10_000, folders: 10_000, bytes: 1_024 * 1_048_576, pathBytes: 4 * 1_048_576 };

/** By the `from` of each step that copies, the files as they are in the drive now. Throws 422, naming the step. */
export async function copiedFiles(
  database: Database,
  spaceId: string,
  steps: readonly EnvironmentStep[],
): Promise<Map<string, CopiedFiles>> {
  const found = new Map<string, { files: CopiedFiles; copied: Copied }>();
  let all: Copied = { files: 0, folders: 0, bytes: 0, pathBytes: 0 };
  for (const [index, step] of steps.entries()) {
    if (!('copy' in step)) continue;
    const { from } = step.copy;
    const pointer = `/steps/${index}/copy/from`;
    const listed = found.get(from) ?? (await filesOf(database, spaceId, from, pointer));
    found.set(from, listed);
    all = sumOf(all, listed.copied);
    const excess = excessOf(all, most);
    if (excess !== undefined) throw refusal(from, pointer, `all steps together can copy ${excess}`);
  }
  return new Map([...found].map(([from, { files }]) => [from, files]));
}

function sumOf(one: Copied, other: Copied): Copied {
  return {
    files: one.files + other.files,
    folders: one.folders + other.folders,
    bytes: one.bytes + other.bytes,
    pathBytes: one.pathBytes + other.pathBytes,
  };
}

/** Whether the files of everything that these steps copy are listed. */
export function copiesOnly(steps: readonly EnvironmentStep[], files: ReadonlyMap<string, CopiedFiles>): boolean {
  return steps.every((step) => !('copy' in step) || files.has(step.copy.from));
}

/** The listed files of what a step copies. A build that copies nothing instead must not become ready. */
export function filesIn(files: ReadonlyMap<string, CopiedFiles>): (from: string) => CopiedFiles {
  return (from) => {
    const listed = files.get(from);
    if (listed === undefined) throw new Error(`The files of ${from} are not listed.`);
    return listed;
  };
}

function refusal(from: string, pointer: string, detail: string): DomainError {
  return new DomainError(
    'unprocessable',
    'ENVIRONMENT_FILE_UNKNOWN',
    `The environment cannot copy ${from}: ${detail}.`,
    {
      errors: [{ pointer, detail }],
    },
  );
}

async function filesOf(
  database: Database,
  spaceId: string,
  from: string,
  pointer: string,
): Promise<{ files: CopiedFiles; copied: Copied }> {
  const { item } = (await find(database, spaceId, from)) ?? {};
  if (item === undefined) throw refusal(from, pointer, 'there is no such file or folder in the drive');
  if (item.kind === 'folder') {
    const tooLarge = (most: string) => refusal(from, pointer, `a folder can have ${most}`);
    const { files, copied } = await filesBelow(database, { itemId: item.id }, tooLarge);
    return { files: Object.fromEntries(files), copied };
  }
  const { content } = item;
  if (content === undefined) throw refusal(from, pointer, 'it is neither a file nor a folder');
  const { objectKey, sha256, size: bytes } = content;
  return {
    files: { [`./${item.name}`]: { objectKey, sha256: sha256.toString('hex') } },
    copied: { files: 1, folders: 0, bytes, pathBytes: Buffer.byteLength(item.name) },
  };
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
