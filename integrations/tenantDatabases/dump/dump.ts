import type { AccountConnection } from '../accountConnection.ts';
import type { TenantConnection } from '../connection.ts';
import { routinesOf, viewsOf } from './definitions.ts';
import { type Entry, format } from './entries.ts';
import { type Column, columnOf, literal, parameter, quote } from './values.ts';

const statementBytes = 256 * 1024;
/** A row that is larger goes by itself, not as a text. */
const largeRowBytes = 1024 * 1024;

interface Table {
  name: string;
  type: string;
}

/**
 * All that is in a database, as it was at one moment. `connection` may only read there, and has no rights elsewhere: its
 * tenant can put anything in the place of a table.
 */
export async function* dumpDatabase(
  connection: AccountConnection,
  admin: TenantConnection,
  name: string,
): AsyncGenerator<Entry> {
  // The store may take its time over what it is sent.
  await connection.run("SET SESSION sql_mode = '', time_zone = '+00:00', net_write_timeout = 600, wait_timeout = 3600");
  if (admin.isMariaDb) await connection.run('SET SESSION max_statement_time = 0');
  await connection.run('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  await connection.run('START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY');
  yield { begin: format, name };
  const tables = await connection.rows<Table>(
    `SELECT TABLE_NAME AS name, TABLE_TYPE AS type FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
      ORDER BY TABLE_NAME`,
  );
  const namesOf = (types: readonly string[]) =>
    tables.filter(({ type }) => types.includes(type)).map((one) => one.name);
  for (const sequence of namesOf(['SEQUENCE'])) yield* sequenceEntries(connection, sequence);
  for (const table of namesOf(['BASE TABLE', 'SYSTEM VERSIONED'])) yield* tableEntries(connection, table);
  yield* viewsOf(connection, namesOf(['VIEW']));
  yield* routinesOf(admin, name);
  yield { end: true };
}

async function* sequenceEntries(connection: AccountConnection, name: string): AsyncGenerator<Entry> {
  const [shown] = await connection.rows<{ Table: string; 'Create Table': string }>(
    `SHOW CREATE SEQUENCE ${quote(name)}`,
  );
  yield { define: String(shown?.['Create Table']), mode: '' };
  const [next] = await connection.rows<{ n: string }>(`SELECT next_not_cached_value AS n FROM ${quote(name)}`);
  yield { rows: `DO SETVAL(${quote(name)}, ${BigInt(next?.n ?? 1)}, 0)` };
}

async function* tableEntries(connection: AccountConnection, table: string): AsyncGenerator<Entry> {
  const [shown] = await connection.rows<{ 'Create Table': string }>(`SHOW CREATE TABLE ${quote(table)}`);
  yield { define: String(shown?.['Create Table']), mode: '' };
  const columns = await columnsOf(connection, table);
  const names = columns.map(({ name }) => quote(name)).join(', ');
  const into = `INSERT INTO ${quote(table)} (${names}) VALUES`;
  let begun: string[] = [];
  let bytes = 0;
  const rows = connection.stream(`SELECT ${columns.map(({ selected }) => selected).join(', ')} FROM ${quote(table)}`);
  for await (const row of rows) {
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

/** Those with values of their own. */
async function columnsOf(connection: AccountConnection, table: string): Promise<Column[]> {
  const all = await connection.rows<{ name: string; type: string; extra: string }>(
    `SELECT COLUMN_NAME AS name, DATA_TYPE AS type, EXTRA AS extra FROM information_schema.COLUMNS
      WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`,
    [table],
  );
  const own = all.filter(({ extra }) => !/\b(VIRTUAL|STORED|PERSISTENT) GENERATED\b/i.test(extra));
  return own.map(({ name, type }) => columnOf(name, type.toLowerCase()));
}
