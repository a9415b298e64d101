import mysql, { type Connection, type RowDataPacket } from 'mysql2/promise';

/** The minimal number of rows for each table. */
const rowsWanted = 4_000;

interface Column {
  name: string;
  dataType: string;
  columnType: string;
  length: number | null;
  extra: string;
}

/** A table's line in a statement's plan. */
export interface PlanStep {
  table: string;
  type: string;
  key: string | null;
  rows: number;
  extra: string;
}

/** Connects as the account that owns the tables. */
export async function openAsOwner(url: string | undefined): Promise<Connection> {
  const connection = await mysql.createConnection({ uri: url, timezone: 'Z' });
  await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  await connection.query('SET SESSION foreign_key_checks = 0');
  return connection;
}

/**
 * Multiplies the rows of every table, as if many installations like this one were merged. Each copy has different ids
 * and unique values; everything else is the same. Returns the number of rows of each table.
 */
export async function multiplyRows(connection: Connection): Promise<Map<string, number>> {
  const [tables] = await connection.query<RowDataPacket[]>(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'",
  );
  await connection.query('CREATE TABLE copy_numbers (i INT NOT NULL PRIMARY KEY)');
  const numbers = Array.from({ length: rowsWanted }, (_, index) => [index + 1]);
  await connection.query('INSERT INTO copy_numbers VALUES ?', [numbers]);
  const counts = new Map<string, number>();
  for (const { name } of tables) counts.set(name as string, await multiplyTable(connection, name as string));
  return counts;
}

async function multiplyTable(connection: Connection, table: string): Promise<number> {
  const columns = (await columnsOf(connection, table)).filter(({ extra }) => !/auto_increment|GENERATED/i.test(extra));
  const [rows] = await connection.query<RowDataPacket[]>(`SELECT COUNT(*) AS n FROM ${table}`);
  const found = Number(rows[0]?.n);
  if (found === 0) await insertAnyRow(connection, table, columns);
  const count = Math.max(found, 1);
  const varied = await variedColumns(connection, table, columns);
  const names = columns.map(({ name }) => `\`${name}\``).join(', ');
  const values = columns.map((column) => (varied.has(column.name) ? variation(column) : `t.\`${column.name}\``));
  const copies = Math.ceil(rowsWanted / count);
  // Copies through another table, since an INSERT that reads its own table needs a temporary file.
  await connection.query(`CREATE TABLE copied_rows AS SELECT * FROM ${table}`);
  await connection.query(
    `INSERT INTO ${table} (${names}) SELECT ${values.join(', ')} FROM copied_rows t JOIN copy_numbers copy ON copy.i <= ?`,
    [copies],
  );
  await connection.query('DROP TABLE copied_rows');
  await connection.query(`ANALYZE TABLE ${table}`);
  return count * (copies + 1);
}

/** Inserts a row into an empty table. */
async function insertAnyRow(connection: Connection, table: string, columns: Column[]): Promise<void> {
  const row = Object.fromEntries(columns.map((column) => [column.name, anyValueOf(column)]));
  await connection.query(`INSERT INTO ${table} SET ?`, [row]);
}

function anyValueOf(column: Column): unknown {
  if (/date|time/.test(column.dataType)) return new Date();
  if (column.dataType === 'enum') return /'([^']*)'/.exec(column.columnType)?.[1];
  if (/binary|blob/.test(column.dataType)) return Buffer.alloc(Math.min(column.length ?? 32, 32));
  return isText(column) ? 'x' : 1;
}

// The aliases are for MySQL, which returns these column names in upper case.
async function columnsOf(connection: Connection, table: string): Promise<Column[]> {
  const [rows] = await connection.query<RowDataPacket[]>(
    `SELECT column_name AS name, data_type AS dataType, column_type AS columnType, character_maximum_length AS length, extra AS extra
      FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? ORDER BY ordinal_position`,
    [table],
  );
  return rows as Column[];
}

const isText = ({ dataType }: Column) => /char|binary|text|blob/.test(dataType);
const isNumber = ({ dataType }: Column) => /int/.test(dataType);

/** Columns that must differ: ids, and one column of each unique index without an id. */
async function variedColumns(connection: Connection, table: string, columns: Column[]): Promise<Set<string>> {
  const varied = new Set(
    columns.filter((column) => isText(column) && /(^|_)id$/.test(column.name)).map(({ name }) => name),
  );
  const [rows] = await connection.query<RowDataPacket[]>(
    `SELECT index_name AS indexName, column_name AS name FROM information_schema.statistics
      WHERE table_schema = DATABASE() AND table_name = ? AND non_unique = 0`,
    [table],
  );
  const byName = new Map(columns.map((column) => [column.name, column]));
  for (const parts of Map.groupBy(rows, ({ indexName }) => indexName as string).values()) {
    const names = parts.map(({ name }) => name as string);
    if (names.some((name) => varied.has(name) || !byName.has(name))) continue;
    const parted = names.flatMap((name) => byName.get(name) ?? []);
    const chosen = parted.find(isText) ?? parted.find(isNumber) ?? parted[0];
    if (chosen !== undefined) varied.add(chosen.name);
  }
  return varied;
}

/** An expression for a different value in each copy, with the same type and maximal length. */
function variation(column: Column): string {
  const value = `t.\`${column.name}\``;
  if (/date|time/.test(column.dataType)) return `${value} + INTERVAL copy.i DAY`;
  if (isNumber(column)) return `${value} + copy.i`;
  if (/binary|blob/.test(column.dataType))
    return `LEFT(CONCAT(UNHEX(LPAD(HEX(copy.i), 8, '0')), ${value}), ${column.length ?? 255})`;
  return `CONCAT(LEFT(${value}, ${(column.length ?? 255) - 5}), '~', copy.i)`;
}

/**
 * The server's plan. Undefined for statements without one. The format is set, since MySQL would return a tree by
 * default.
 */
export async function planOf(connection: Connection, sql: string): Promise<PlanStep[] | undefined> {
  if (!/^\s*\(?\s*(SELECT|UPDATE|DELETE|INSERT[^(]*\([^)]*\)\s*SELECT|WITH)\b/i.test(sql)) return undefined;
  const [rows] = await connection.query<RowDataPacket[]>(`EXPLAIN FORMAT=TRADITIONAL ${sql}`);
  return rows.flatMap((row) => (isReadOfTable(row) ? [stepOf(row)] : []));
}

/** Skips MySQL's lines for the table that an INSERT writes to, and for interim results of a recursive query. */
function isReadOfTable({ table, select_type, Extra }: RowDataPacket): boolean {
  return table !== null && !/^(INSERT|REPLACE)$/.test(select_type) && !/\bRecursive\b/.test(Extra ?? '');
}

function stepOf({ table, type, key, rows, Extra }: RowDataPacket): PlanStep {
  return { table, type: type ?? '', key, rows: Number(rows ?? 0), extra: Extra ?? '' };
}
