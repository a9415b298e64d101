import { newId } from '../../base/ids.ts';
import type { Database } from '../../models/database/database.ts';
import { newName } from '../../models/databases/names.ts';

/** The row of a space's database that does not exist on the server yet. */
export function databaseRow({ spaceId, createdBy }: { spaceId: string; createdBy: string }) {
  const id = newId('spaceDatabase');
  return {
    ...{ id, space_id: spaceId, name: id, live_name: id, server_name: newName('d'), state: 'living' },
    ...{ created_by: createdBy, created_at: new Date() },
  };
}

export async function insertDatabase(
  { pool }: Pick<Database, 'pool'>,
  fields: { spaceId: string; createdBy: string },
): Promise<string> {
  const row = databaseRow(fields);
  await pool.query('INSERT INTO space_databases SET ?', [row]);
  return row.id;
}

/** The row of a backup that the store does not have. */
export function backupRow({ spaceId, databaseId }: { spaceId: string; databaseId: string }) {
  const [id, now] = [newId('databaseBackup'), new Date()];
  const times = { created_at: now, ended_at: now };
  return { id, space_id: spaceId, database_id: databaseId, state: 'kept', size_bytes: 10, ...times };
}

export async function insertBackup(
  { pool }: Pick<Database, 'pool'>,
  fields: { spaceId: string; databaseId: string },
): Promise<string> {
  const row = backupRow(fields);
  await pool.query('INSERT INTO space_database_backups SET ?', [row]);
  return row.id;
}
