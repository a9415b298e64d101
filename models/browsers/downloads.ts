import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { driveContainerId } from '../drive/containers.ts';
import { checkName, maxNameBytes } from '../drive/names.ts';
import type { FileTarget } from '../drive/placeFile.ts';
import type { BrowserSession } from './session.ts';

const folderName = 'Downloads';

/** The folder of the drive for downloads. */
export const downloadsPath = `/${folderName}`;

/** Where a downloaded file goes. An existing file of the same name stays beside it. */
export function downloadTarget({ spaceId, createdBy }: BrowserSession, name: string): FileTarget {
  return {
    spaceId,
    userId: createdBy,
    containerId: driveContainerId,
    names: [folderName],
    pathOf: 'folder',
    fileName: driveName(name),
    onConflict: 'rename',
  };
}

/** The name without characters that the drive does not accept: a page has chosen it. */
function driveName(name: string): string {
  const characters = [...name.toWellFormed()].filter((one) => one >= ' ' && !'/\u007F\uFFFD'.includes(one));
  while (Buffer.byteLength(characters.join('')) > maxNameBytes) characters.splice(characters.length >> 1, 1);
  const clean = characters.join('');
  try {
    checkName(clean);
    return clean;
  } catch {
    return 'download';
  }
}

/** Whether the drive has this state of a file already. */
export async function isDownloaded({ pool }: Pick<Database, 'pool'>, sessionId: string, key: Buffer): Promise<boolean> {
  const sql = 'SELECT 1 FROM browser_downloads WHERE session_id = ? AND file_key = ?';
  const rows = await select(pool, sql, [sessionId, key]);
  return rows.length > 0;
}

/**
 * For the transaction that puts a download into the drive. Throws UniqueConstraintError if another attempt has done so.
 */
export async function noteDownload(
  tx: Transaction,
  { id, spaceId }: BrowserSession,
  { key, sizeBytes }: { key: Buffer; sizeBytes: number },
): Promise<void> {
  await insert(tx, 'browser_downloads', { sessionId: id, fileKey: key, spaceId });
  const sql = `UPDATE browser_sessions SET downloaded_files = downloaded_files + 1,
      downloaded_bytes = downloaded_bytes + ? WHERE id = ?`;
  await execute(tx, sql, [sizeBytes, id]);
}

/** Notes why some downloads are left on the computer; null when none are. */
export async function noteDownloadFault(
  { pool }: Pick<Database, 'pool'>,
  { id }: BrowserSession,
  code: string | null,
): Promise<void> {
  await execute(pool, 'UPDATE browser_sessions SET download_code = ? WHERE id = ?', [code, id]);
}
