import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { select } from '../database/sql.ts';
import { type LeftOut, readLeftOut } from './leftOut.ts';
import { nameKey } from './names.ts';

/** The server has `living` and `deleted` ones, but a deleted one refuses all connections. `purged` is gone. */
export type DatabaseState = 'living' | 'deleted' | 'purged';

/** A database of a space, on the server for such databases. */
export interface SpaceDatabase {
  id: string;
  spaceId: string;
  /** The space's name for it. */
  name: string;
  /** Its name on the server. */
  serverName: string;
  /** The wanted state. The server follows. */
  state: DatabaseState;
  /** True once the server has it. */
  isMade: boolean;
  /** Incremented with each request for a change. */
  version: number;
  createdBy: string;
  createdAt: Date;
  deletedAt: Date | null;
  /** When a deleted database is purged. */
  purgeAt: Date | null;
  /** The size of its files when last measured. */
  sizeBytes: number;
  tableCount: number;
  /** It is too large, so writes are refused. */
  isFull: boolean;
  /** Its definitions alone are too large: views, functions, procedures and triggers. */
  isFullOfDefinitions: boolean;
  /** The version that asked for its tables to be rewritten. 0 once that is done. */
  compacts: number;
  /** The backup from which it is being made. */
  restores: string | null;
  /** What was missing in the backup from which it was made. */
  leftOut: LeftOut;
}

const columns = `id, space_id, name, server_name, state, is_made, version, created_by, created_at, deleted_at,
  purge_at, size_bytes, table_count, is_full, compacts, restores, left_out`;

type Flag = 'isMade' | 'isFull';

function read(row: object): SpaceDatabase {
  const found = row as Omit<SpaceDatabase, Flag | 'isFullOfDefinitions' | 'leftOut'> &
    Record<Flag, number> & { leftOut: string | null };
  const full = { isFull: Number(found.isFull) > 0, isFullOfDefinitions: Number(found.isFull) > 1 };
  const flags = { isMade: Boolean(found.isMade), ...full };
  return { ...found, sizeBytes: Number(found.sizeBytes), ...flags, leftOut: readLeftOut(found.leftOut) };
}

/** Oldest first, including deleted ones that can still be restored. */
export async function listDatabases(
  database: Pick<Database, 'pool'>,
  spaceId: string,
  page: PageRequest,
): Promise<Page<SpaceDatabase>> {
  const sql = `SELECT ${columns} FROM space_databases WHERE space_id = ? AND state <> 'purged'`;
  return readPage(database, page, { sql, values: [spaceId], by: 'id', order: 'asc', read });
}

/** Throws 404. */
export async function getDatabase(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, id }: { spaceId: string; id: string },
): Promise<SpaceDatabase> {
  const sql = `SELECT ${columns} FROM space_databases WHERE id = ? AND space_id = ? AND state <> 'purged'`;
  const rows = await select(pool, sql, [id, spaceId]);
  if (rows[0] === undefined) throw notFound('database');
  return read(rows[0]);
}

/** The living database with this name. Throws 404. */
export async function findByName(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, name }: { spaceId: string; name: string },
): Promise<SpaceDatabase> {
  const sql = `SELECT ${columns} FROM space_databases WHERE space_id = ? AND live_name = ?`;
  const rows = await select(pool, sql, [spaceId, nameKey(name)]);
  if (rows[0] === undefined) throw notFound('database');
  return read(rows[0]);
}

export async function isLiving({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  const sql = "SELECT 1 FROM space_databases WHERE id = ? AND state = 'living'";
  const rows = await select(pool, sql, [id]);
  return rows.length > 0;
}

/** Locks a database in any state. Undefined if there is none. */
export async function lockDatabase(tx: Transaction, id: string): Promise<SpaceDatabase | undefined> {
  const [row] = await select<object>(tx, `SELECT ${columns} FROM space_databases WHERE id = ? FOR UPDATE`, [id]);
  return row && read(row);
}

/** Locks a database of the space. Throws 404. */
export async function lockOf(
  tx: Transaction,
  { spaceId, id }: { spaceId: string; id: string },
): Promise<SpaceDatabase> {
  const database = await lockDatabase(tx, id);
  if (database?.spaceId !== spaceId || database.state === 'purged') throw notFound('database');
  return database;
}

/** Throws 409 `DATABASE_DELETED` for a deleted database. */
export function requireLiving({ state }: Pick<SpaceDatabase, 'state'>): void {
  if (state === 'living') return;
  throw new DomainError('conflict', 'DATABASE_DELETED', 'The database is deleted. Restore it first.');
}
