import type { AccountConnection } from '../accountConnection.ts';
import type { TenantConnection } from '../connection.ts';
import { RowTooLarge, TenantServerError } from '../errors.ts';
import { largestRowBytes } from '../rowBound.ts';
import { routinesOf, viewsOf } from './definitions.ts';
import { type Entry, format } from './entries.ts';
import { LeftOut } from './leftOut.ts';
import { type Column, columnOf, literal, parameter, quote } from './values.ts';

const statementBytes = 256 * 1024;
/** A larger row is a separate entry, with values beside its statement. */
const largeRowBytes = 1024 * 1024;

const tableTypes = ['BASE TABLE', 'SYSTEM VERSIONED'];
/** The part of a packet that is not available to the values of a row. */
const besidesValues = 64 * 1024;

interface Table {
  name: string;
  type: string;
}

export interface DumpOptions {
  /** The maximum size of a row. The reader must have the memory for it. */
  mostRowBytes?: number | undefined;
  /** Collects what is gone or broken. */
  leftOut?: LeftOut | undefined;
  /** Called for each row that was read. */
  onRow?: ((table: string) => void) | undefined;
}

/**
 * The content of a database at one moment. `connection` must be read-only, without rights elsewhere, because the tenant
 * can put anything in the place of a table.
 */
export async function* dumpDatabase(
  connection: AccountConnection,
  admin: TenantConnection,
  name: string,
  { mostRowBytes = largestRowBytes, leftOut = new LeftOut(), onRow }: DumpOptions = {},
): AsyncGenerator<Entry> {
  // The store may be slow to take the bytes.
  await connection.run("SET SESSION sql_mode = '', time_zone = '+00:00', net_write_timeout = 600, wait_timeout = 600");
  await connection.run('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  await connection.run('START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY');
  yield { begin: format, name };
  yield await databaseEntry(connection, name);
  const tables = await connection.rows<Table>(
    `SELECT TABLE_NAME AS name, TABLE_TYPE AS type FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
      ORDER BY TABLE_NAME`,
  );
  const namesOf = (types: readonly string[]) =>
    tables.filter(({ type }) => types.includes(type)).map((one) => one.name);
  for (const sequence of namesOf(['SEQUENCE'])) yield* sequenceEntries(connection, sequence);
  const maxRowBytes = await mostOfRow(connection, mostRowBytes);
  for (const table of namesOf(tableTypes)) {
    // The tenant may change the table again once it has been read.
    await connection.run('SAVEPOINT one');
    yield* tableEntries(connection, table, { isMariaDb: admin.isMariaDb, maxRowBytes, leftOut, onRow });
    await connection.run('ROLLBACK TO SAVEPOINT one');
  }
  yield* viewsOf(connection, namesOf(['VIEW']), leftOut);
  yield* routinesOf(admin, name, leftOut);
  yield { end: true };
}

async function* sequenceEntries(connection: AccountConnection, name: string): AsyncGenerator<Entry> {
  const [shown] = await connection.rows<{ Table: string; 'Create Table': string }>(
    `SHOW CREATE SEQUENCE ${quote(name)}`,
  );
  yield { define: String(shown?.['Create Table']), mode: '' };
  const [next] = await connection.rows<{ n: string }>(
    `SELECT CAST(next_not_cached_value AS CHAR) AS n FROM ${quote(name)}`,
  );
  yield { rows: `ALTER SEQUENCE ${quote(name)} RESTART ${BigInt(next?.n ?? 1)}` };
}

/** The defaults for what is created in the database later. */
async function databaseEntry(connection: AccountConnection, name: string): Promise<Entry> {
  const [its] = await connection.rows<{ charset: string; collation: string }>(
    'SELECT @@character_set_database AS charset, @@collation_database AS collation',
  );
  const word = (text: string | undefined) => String(text).replace(/\W/g, '');
  const sets = `CHARACTER SET ${word(its?.charset)} COLLATE ${word(its?.collation)}`;
  return { define: `ALTER DATABASE ${quote(name)} ${sets}`, mode: '' };
}

/** The largest row that the server accepts when it is restored. */
async function mostOfRow(connection: AccountConnection, most: number): Promise<number> {
  const [row] = await connection.rows<{ packet: number }>('SELECT @@max_allowed_packet AS packet');
  return Math.min(most, Number(row?.packet) - besidesValues);
}

interface ReadOptions {
  isMariaDb: boolean;
  maxRowBytes: number;
  leftOut: LeftOut;
  onRow: DumpOptions['onRow'];
}

async function* tableEntries(
  connection: AccountConnection,
  table: string,
  { isMariaDb, maxRowBytes, leftOut, onRow }: ReadOptions,
): AsyncGenerator<Entry> {
  if (!(await holdTable(connection, table))) return leftOut.add({ kind: 'table', name: table });
  const [shown] = await connection.rows<{ 'Create Table': string }>(`SHOW CREATE TABLE ${quote(table)}`);
  yield { define: String(shown?.['Create Table']), mode: '' };
  const columns = await columnsOf(connection, table);
  const names = columns.map(({ name }) => quote(name)).join(', ');
  const into = `INSERT INTO ${quote(table)} (${names}) VALUES`;
  let begun: string[] = [];
  let bytes = 0;
  const all = `SELECT ${columns.map(({ selected }) => selected).join(', ')} FROM ${quote(table)}`;
  // This takes as long as the store takes for the rows. No code of the tenant runs in it.
  const rows = connection.stream(`${isMariaDb ? 'SET STATEMENT max_statement_time = 0 FOR ' : ''}${all}`, maxRowBytes);
  for await (const row of namingTable(rows, table)) {
    onRow?.(table);
    if (row.reduce((sum, value) => sum + (value?.length ?? 0), 0) > largeRowBytes) {
      const values = columns.map((column, at) => parameter(column, row[at] ?? null));
      yield { row: `${into} (${columns.map(() => '?').join(', ')})`, values };
      continue;
    }
    const values = `(${columns.map((column, at) => literal(column, row[at] ?? null)).join(', ')})`;
    begun.push(values);
    bytes += values.length;
    if (bytes < statementBytes) continue;
    yield { rows: `${into} ${begun.join(', ')}` };
    [begun, bytes] = [[], 0];
  }
  if (begun.length > 0) yield { rows: `${into} ${begun.join(', ')}` };
}

const [noSuchKey, discarded] = [1176, 1814];

/**
 * Holds a table while it is read, so that no view takes its place. False if a view already has, or if the tenant has
 * discarded its rows.
 */
async function holdTable(connection: AccountConnection, table: string): Promise<boolean> {
  try {
    // A view has no indexes, so the server refuses this before any of the view runs.
    await connection.run(`SELECT 1 FROM ${quote(table)} USE INDEX () LIMIT 1`);
    return true;
  } catch (error) {
    if (error instanceof TenantServerError && (error.errno === noSuchKey || error.errno === discarded)) return false;
    throw error;
  }
}

async function* namingTable<Row>(rows: AsyncIterable<Row>, table: string): AsyncGenerator<Row> {
  try {
    yield* rows;
  } catch (error) {
    throw error instanceof RowTooLarge ? new RowTooLarge(error.maxBytes, table) : error;
  }
}

/** The columns that are not generated. */
async function columnsOf(connection: AccountConnection, table: string): Promise<Column[]> {
  const all = await connection.rows<{ name: string; type: string; extra: string }>(
    `SELECT COLUMN_NAME AS name, DATA_TYPE AS type, EXTRA AS extra FROM information_schema.COLUMNS
      WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`,
    [table],
  );
  const own = all.filter(({ extra }) => !/\b(VIRTUAL|STORED|PERSISTENT) GENERATED\b/i.test(extra));
  return own.map(({ name, type }) => columnOf(name, type.toLowerCase()));
}
