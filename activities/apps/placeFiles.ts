import { Readable } from 'node:stream';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { ExpectedFiles } from '../../integrations/computers/types.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { filesBelow } from '../../models/apps/folderFiles.ts';
import type { Run } from '../../models/apps/run.ts';
import { type AppFiles, findVersion } from '../../models/apps/version.ts';
import type { Database } from '../../models/database/database.ts';

interface Deps {
  database: Database;
  storage: Pick<ObjectStore, 'read'>;
}

const maxMarkerBytes = 2_097_152;
/** Programs are among them, and the drive does not say which. */
const mode = 0o755;

interface Placing {
  signal: AbortSignal;
  /** Writes all files. Otherwise only those that have changed since they were placed last. */
  isAnew?: boolean;
}

/**
 * Brings the files of a folder to the computer as they are in the version that is run: files that have changed since
 * they were placed last are written, files that the version no longer has are deleted, and what the app has written
 * itself stays. Each file is written in one step, so this may be done twice, or by two runs at once. The record of what
 * was placed lies on the computer, so it saves work and proves nothing. Returns what proves it: the version's hashes.
 */
export async function placeFiles(
  { database, storage }: Deps,
  client: HostClient,
  run: Pick<Run, 'appId' | 'itemId' | 'spec'>,
  { signal, isAnew = false }: Placing,
): Promise<ExpectedFiles> {
  const { itemId, spec } = run;
  const { folder } = spec.place;
  const marker = `apps/.${itemId}.json`;
  const files = new Map(Object.entries(await filesOf(database, run)));
  const placed = await readMarker(client, marker, signal);
  await client.makeFolder(folder, { parents: true });
  for (const [path, { objectKey, sha256 }] of files) {
    signal.throwIfAborted();
    if (!isAnew && placed[path] === sha256) continue;
    const bytes = await storage.read(objectKey).catch(asVersionGone);
    // A folder or a link may be there instead. A write would fail at one and follow the other.
    if (isAnew) await unlessAbsent(client.deleteFile(`${folder}/${path}`, { recursive: true }));
    await client.writeFile(`${folder}/${path}`, bytes, { mode, parents: true, signal });
  }
  for (const path of Object.keys(placed)) {
    signal.throwIfAborted();
    if (!files.has(path)) await unlessAbsent(client.deleteFile(`${folder}/${path}`));
  }
  const hashes = Object.fromEntries([...files].map(([path, { sha256 }]) => [path, sha256]));
  const now = JSON.stringify(hashes);
  if (now !== JSON.stringify(placed)) await client.writeFile(marker, Buffer.from(now), { parents: true, signal });
  return { folder, sha256: hashes };
}

/** Those of the version that was in use when the run was asked for. */
async function filesOf(
  database: Database,
  { appId, itemId, spec: { versionId } }: Pick<Run, 'appId' | 'itemId' | 'spec'>,
): Promise<AppFiles> {
  // Asked for before there were versions.
  if (versionId === undefined) return Object.fromEntries(await filesBelow(database, { itemId }));
  const version = await findVersion(database, appId, versionId);
  if (version?.files == null) throw versionGone();
  return version.files;
}

/** The drive keeps a file's earlier contents, but not for ever. */
function asVersionGone(error: unknown): never {
  if (error instanceof DomainError && error.code === 'CONTENT_MISSING') throw versionGone();
  throw error;
}

function versionGone(): DomainError {
  const detail = 'The drive does not keep the files of this version any more. Take the one that waits into use.';
  return new DomainError('gone', 'APP_VERSION_GONE', detail);
}

/** What was brought last, as far as the computer still says so. */
async function readMarker(client: HostClient, path: string, signal: AbortSignal): Promise<Record<string, string>> {
  const file = await unlessAbsent(client.readFile(path, { signal }));
  if (file === undefined) return {};
  try {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of Readable.from(file.body)) {
      size += (chunk as Buffer).length;
      if (size > maxMarkerBytes) return {};
      chunks.push(chunk as Buffer);
    }
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString());
    const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isRecord ? (value as Record<string, string>) : {};
  } catch (error) {
    // Whoever uses the computer may have written anything there.
    if (error instanceof SyntaxError) return {};
    throw error;
  } finally {
    file.body.destroy();
  }
}

async function unlessAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    const codes = ['FILE_NOT_FOUND', 'NOT_A_FILE', 'FOLDER_NOT_EMPTY'];
    if (error instanceof DomainError && codes.includes(error.code)) return undefined;
    throw error;
  }
}
