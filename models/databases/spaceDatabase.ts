import type { RowDataPacket } from 'mysql2';
import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { select } from '../database/sql.ts';
import { type LeftOut, readLeftOut } from './leftOut.ts';
import { nameKey } from './names.ts';

/** `living` and `deleted` ones are there on the server, deleted ones for nobody; `purged` is gone. */
export type DatabaseState = 'living' | 'deleted' | 'purged';

/** A database of a space, on the server that is only for those. */
export interface SpaceDatabase {
  id: string;
  spaceId: string;
  /** What its space calls it. */
  name: string;
  /** What the server calls it. */
  serverName: string;
  /** As it is wanted; the server follows. */
  state: DatabaseState;
  /** Whether the server has had it. */
  isMade: boolean;
  /** Counts what was wished of it. */
  version: number;
  createdBy: string;
  createdAt: Date;
  deletedAt: Date | null;
  /** When a deleted one goes for good. */
  purgeAt: Date | null;
  /** Of its files, as they were measured last. */
  sizeBytes: number;
  tableCount: number;
  /** It is too large: nothing more is written to it. */
  isFull: boolean;
  /** And that without its tables. */
  isFullOfDefinitions: boolean;
  /** The version that wished its tables to be written anew; 0 where that is done. */
  compacts: number;
  /** The backup from which it is being made. */
  restores: string | null;
  /** Of the backup from which it was made. */
  leftOut: LeftOut;
}

const columns = `id, space_id AS spaceId, name, server_name AS serverName, state, is_made AS isMade, version,
  created_by AS createdBy, created_at AS createdAt, deleted_at AS deletedAt, purge_at AS purgeAt,
  size_bytes AS sizeBytes, table_count AS tableCount, is_full AS isFull, compacts, restores, left_out AS leftOut`;

type Flag = 'isMade' | 'isFull';

function read(row: object): SpaceDatabase {
  const found = row as Omit<SpaceDatabase, Flag | 'isFullOfDefinitions' | 'leftOut'> &
    Record<Flag, number> & { leftOut: string | null };
  const full = { isFull: Number(found.isFull) > 0, isFullOfDefinitions: Number(found.isFull) > 1 };
  const flags = { isMade: Boolean(found.isMade), ...full };
  return { ...found, sizeBytes: Number(found.sizeBytes), ...flags, leftOut: readLeftOut(found.leftOut) };
}

/** In the order in which they were made, those too that can still be restored. */
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
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT ${columns} FROM space_databases WHERE id = ? AND space_id = ? AND state <> 'purged'`,
    [id, spaceId],
  );
  if (rows[0] === undefined) throw notFound('database');
  return read(rows[0]);
}

/** The living one of this name. Throws 404. */
export async function findByName(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, name }: { spaceId: string; name: string },
): Promise<SpaceDatabase> {
  const sql = `SELECT ${columns} FROM space_databases WHERE space_id = ? AND live_name = ?`;
  const [rows] = await pool.query<RowDataPacket[]>(sql, [spaceId, nameKey(name)]);
  if (rows[0] === undefined) throw notFound('database');
  return read(rows[0]);
}

/** Whether there is such a one that is not deleted. */
export async function isLiving({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  const sql = "SELECT 1 FROM space_databases WHERE id = ? AND state = 'living'";
  const [rows] = await pool.query<RowDataPacket[]>(sql, [id]);
  return rows.length > 0;
}

/** Locked, whatever its state; undefined when there is none. */
export async function lockDatabase(tx: Transaction, id: string): Promise<SpaceDatabase | undefined> {
  const [row] = await select<object>(tx, `SELECT ${columns} FROM space_databases WHERE id = ? FOR UPDATE`, [id]);
  return row && read(row);
}

/** Locked. Throws 404. */
export async function lockOf(
  tx: Transaction,
  { spaceId, id }: { spaceId: string; id: string },
): Promise<SpaceDatabase> {
  const database = await lockDatabase(tx, id);
  if (database?.spaceId !== spaceId || database.state === 'purged') throw notFound('database');
  return database;
}

/** Throws 409 for a deleted one. */
export function requireLiving({ state }: Pick<SpaceDatabase, 'state'>): void {
  if (state === 'living') return;
  throw new DomainError('conflict', 'DATABASE_DELETED', 'The database is deleted. Restore it first.');
}
