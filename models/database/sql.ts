import type { Connection as CallbackConnection, FieldPacket } from 'mysql2';
import type { Connection, Pool, ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import { type Model, type ModelStatic, Transaction, UniqueConstraintError } from 'sequelize';
import { oneFor } from '../../base/oneFor.ts';

const duplicateEntry = 1062;

/** Where a plain statement runs: in a transaction, on a pool, or on a connection of its own. */
export type Runner = Transaction | Pick<Pool, 'query'>;

/**
 * Runs a plain statement. In a transaction, it runs on the transaction's own connection: building it through Sequelize
 * costs several times what MySQL takes to run it. An object among the values is for `SET ?`: its fields have the columns'
 * names in camel case, and objects and arrays in it are written as JSON. A duplicate throws Sequelize's
 * UniqueConstraintError.
 */
export async function execute(on: Runner, sql: string, values: unknown[] = []): Promise<ResultSetHeader> {
  try {
    const [result] = await connectionOf(on).query<ResultSetHeader>(sql, values.map(withColumns));
    return result;
  } catch (error) {
    if ((error as { errno?: number }).errno === duplicateEntry) {
      throw new UniqueConstraintError({ parent: error as never, errors: [], fields: {} });
    }
    throw error;
  }
}

/**
 * The rows of a SELECT. Each column is a field with its name in camel case: `created_at` becomes `createdAt`. Two
 * columns of one name are an error; give one of them an alias.
 */
export async function select<Row = RowDataPacket>(on: Runner, sql: string, values: unknown[] = []): Promise<Row[]> {
  return objectsFrom(await connectionOf(on).query<RowDataPacket[][]>({ sql, rowsAsArray: true }, values));
}

/** The same through a prepared statement, for the few SELECTs that most requests run. */
export async function selectPrepared<Row = RowDataPacket>(
  pool: Pool,
  sql: string,
  values: string[] | Buffer[],
): Promise<Row[]> {
  return objectsFrom(await pool.execute<RowDataPacket[][]>({ sql, rowsAsArray: true }, values));
}

/**
 * Inserts one row. Its fields have the columns' names in camel case. Returns the row's AUTO_INCREMENT number, if the
 * table has one. A duplicate throws Sequelize's UniqueConstraintError.
 */
export async function insert(on: Runner, table: string, row: Record<string, unknown>): Promise<number> {
  return (await execute(on, `INSERT INTO ${table} SET ?`, [row])).insertId;
}

/** Inserts a new instance of a model. Hooks and validations do not run. */
export async function insertInstance(tx: Transaction, instance: Model): Promise<number> {
  return insertInstances(tx, [instance]);
}

/** The same for several instances of one model with values for the same columns. Returns the first one's number. */
export async function insertInstances(tx: Transaction, instances: readonly Model[]): Promise<number> {
  const { sql, values } = insertionOf(instances);
  const { insertId } = await execute(tx, sql, values);
  for (const instance of instances) instance.isNewRecord = false;
  return insertId;
}

export interface Statement {
  sql: string;
  values: unknown[];
}

/** The statement that inserts new instances of one model. */
function insertionOf(instances: readonly Model[]): Statement {
  const [first] = instances;
  if (first === undefined) throw new Error('There are no rows to insert.');
  const { tableName, rawAttributes } = first.constructor as ModelStatic<Model>;
  const written = Object.keys(first.dataValues as object).filter((attribute) => attribute in rawAttributes);
  const columns = written.map((attribute) => rawAttributes[attribute]?.field);
  const rows = instances.map(({ dataValues }) => written.map((attribute) => dataValues[attribute]));
  return { sql: 'INSERT INTO ?? (??) VALUES ?', values: [tableName, columns, rows] };
}

/** A model's instance from a whole row that `select` has read. */
export function instanceOf<M extends Model>(model: ModelStatic<M>, row: object): M {
  return model.build(row as never, { isNewRecord: false, raw: true });
}

/** The field of a column: `createdAt` for `created_at`, `memoryMiB` for `memory_mib`. */
export function fieldOf(column: string): string {
  return column.replace(/_(mib$|[a-z])/g, (_match, part: string) => (part === 'mib' ? 'MiB' : part.toUpperCase()));
}

/** The column of a field. */
export function columnOf(field: string): string {
  return field.replace(/MiB$|[A-Z]/g, (part) => `_${part.toLowerCase()}`);
}

/** Replaces an object of fields by one of columns. Other values stay. */
function withColumns(value: unknown): unknown {
  if (!isPlain(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, each]) => [
      columnOf(field),
      Array.isArray(each) || isPlain(each) ? JSON.stringify(each) : each,
    ]),
  );
}

/** Whether this is an object of fields, and not a date, bytes, or what mysql2's `raw` returns. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  return Object.getPrototypeOf(value) === Object.prototype && !('toSqlString' in value);
}

type Make = (values: readonly unknown[]) => object;

/** Makes an object of the values of a row, for each list of columns that was read. */
const makers = new Map<string, Make>();

function objectsFrom<Row>([rows, fields]: [unknown[][], FieldPacket[]]): Row[] {
  const columns = fields.map(({ name }) => name);
  const key = columns.join();
  const make = makers.get(key) ?? makerOf(columns);
  makers.set(key, make);
  return rows.map(make) as Row[];
}

/** Compiled, as mysql2 compiles its own: filling an object in a loop takes several times as long. */
function makerOf(columns: readonly string[]): Make {
  const names = columns.map(fieldOf);
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  if (twice !== undefined) throw new Error(`The statement reads two columns as ${twice}. Give one of them an alias.`);
  const fields = names.map((name, n) => `${JSON.stringify(name)}: values[${n}]`);
  return new Function('values', `return { ${fields.join(', ')} };`) as Make;
}

/** A connection's promise interface. It costs as much to make as a statement to send, so it is kept. */
const promising = oneFor((connection: CallbackConnection): Connection => connection.promise());

function connectionOf(on: Runner): Pick<Pool, 'query'> {
  return on instanceof Transaction ? promising((on as unknown as { connection: CallbackConnection }).connection) : on;
}
