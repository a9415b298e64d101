import { bytesUpTo } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { ExpectedFiles } from '../../integrations/computers/types.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { filesOfApp } from '../../models/apps/lookAtApp.ts';
import type { Run } from '../../models/apps/run.ts';
import { type AppFiles, findVersion } from '../../models/apps/version.ts';
import type { Database } from '../../models/database/database.ts';

interface Deps {
  database: Database;
  storage: Pick<ObjectStore, 'read'>;
}

const maxMarkerBytes = 2_097_152;
/** Some files are programs, and the drive does not say which. */
const mode = 0o755;

interface Placing {
  signal: AbortSignal;
  /** Writes all files, not only those that changed since they were last placed. */
  isAnew?: boolean;
}

/**
 * Copies the files of a folder to the computer as they are in the run's version. It writes files that changed since
 * they were last placed, deletes files that the version no longer has, and keeps files that the app wrote itself. Each
 * file is written atomically, so this may run twice, or for two runs at once. The record of placed files is on the
 * computer, so it saves work but proves nothing. Returns the version's hashes, which prove the content.
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
    // A folder or a link may be in the file's place. A write would fail on the one and follow the other.
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

/** The files of the version that was in use when the run was asked for. */
async function filesOf(
  database: Database,
  { appId, itemId, spec: { versionId } }: Pick<Run, 'appId' | 'itemId' | 'spec'>,
): Promise<AppFiles> {
  // The run was asked for before there were versions.
  if (versionId === undefined) return filesOfApp(database, itemId);
  const version = await findVersion(database, appId, versionId);
  if (version?.files == null) throw versionGone();
  return version.files;
}

/** The drive keeps a file's earlier contents only for a while. */
function asVersionGone(error: unknown): never {
  if (error instanceof DomainError && error.code === 'CONTENT_MISSING') throw versionGone();
  throw error;
}

function versionGone(): DomainError {
  const detail = 'The drive no longer has the files of this version. Approve the waiting version.';
  return new DomainError('gone', 'APP_VERSION_GONE', detail);
}

/** The files that were placed last, according to the computer. */
async function readMarker(client: HostClient, path: string, signal: AbortSignal): Promise<Record<string, string>> {
  const file = await unlessAbsent(client.readFile(path, { signal }));
  if (file === undefined) return {};
  try {
    const bytes = await bytesUpTo(file.body, maxMarkerBytes);
    if (bytes.length > maxMarkerBytes) return {};
    const value: unknown = JSON.parse(bytes.toString());
    const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isRecord ? (value as Record<string, string>) : {};
  } catch (error) {
    // Users of the computer may have written anything there.
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
