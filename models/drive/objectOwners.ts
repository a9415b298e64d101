import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/** A row that refers to an object. */
export interface ObjectOwner {
  key: string;
  /** A description for people, with the row's id. */
  owner: string;
}

/** Every column that holds an object key, except in uploads that are under way. */
const owners = [
  { table: 'drive_items', column: 'object_key', owner: "CONCAT('the file ', id)" },
  { table: 'drive_versions', column: 'object_key', owner: "CONCAT('version ', version, ' of the file ', item_id)" },
  { table: 'git_bundles', column: 'object_key', owner: "CONCAT('the git repository ', item_id)" },
  { table: 'browser_profiles', column: 'object_key', owner: "CONCAT('the browser profile ', id)" },
  {
    table: 'home_save_pieces',
    column: 'object_key',
    owner: "CONCAT('piece ', number, ' of the saved home ', save_id)",
  },
  { table: 'space_database_backups', column: 'object_key', owner: "CONCAT('the backup ', id, ' of a database')" },
  { table: 'app_run_attempts', column: 'log_key', owner: "CONCAT('the log of the run ', run_id)" },
] as const;

/** The rows that refer to these objects. This reads all of the tables, so ask for many objects at once. */
export async function ownersOf({ pool }: Pick<Database, 'pool'>, keys: readonly string[]): Promise<ObjectOwner[]> {
  if (keys.length === 0) return [];
  const found: ObjectOwner[] = [];
  for (const { table, column, owner } of owners) {
    const sql = `SELECT ${column} AS \`key\`, ${owner} AS owner FROM ${table} WHERE ${column} IN (?)`;
    const rows = await select(pool, sql, [keys]);
    for (const { key, owner: its } of rows) found.push({ key: String(key), owner: String(its) });
  }
  return found;
}
