import type { Connection as CallbackConnection } from 'mysql2';
import type { Connection, ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import { type Model, type ModelStatic, type Transaction, UniqueConstraintError } from 'sequelize';
import { oneFor } from '../../base/oneFor.ts';

const duplicateEntry = 1062;

/**
 * Plain statements on a transaction's own connection. For the few statements that every turn runs: building them
 * through Sequelize costs several times what MySQL takes to run them.
 */
export async function execute(tx: Transaction, sql: string, values: unknown[]): Promise<ResultSetHeader> {
  try {
    const [result] = await connectionOf(tx).query<ResultSetHeader>(sql, values);
    return result;
  } catch (error) {
    if ((error as { errno?: number }).errno === duplicateEntry) {
      throw new UniqueConstraintError({ parent: error as never, errors: [], fields: {} });
    }
    throw error;
  }
}

/** The rows of a SELECT within the transaction. */
export async function select<Row>(tx: Transaction, sql: string, values: unknown[]): Promise<Row[]> {
  const [rows] = await connectionOf(tx).query<RowDataPacket[]>(sql, values);
  return rows as unknown as Row[];
}

/**
 * Inserts one row, with the table's column names as keys. Returns the row's AUTO_INCREMENT number, if the table has
 * one. A duplicate throws Sequelize's UniqueConstraintError.
 */
export async function insert(tx: Transaction, table: string, row: Record<string, unknown>): Promise<number> {
  return (await execute(tx, `INSERT INTO ${table} SET ?`, [row])).insertId;
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

/** The statement that inserts new instances of one model. `instead` overrides values of their attributes. */
export function insertionOf(instances: readonly Model[], instead: Readonly<Record<string, unknown>> = {}): Statement {
  const [first] = instances;
  if (first === undefined) throw new Error('There are no rows to insert.');
  const { tableName, rawAttributes } = first.constructor as ModelStatic<Model>;
  const written = Object.keys(first.dataValues as object).filter((attribute) => attribute in rawAttributes);
  const columns = written.map((attribute) => rawAttributes[attribute]?.field);
  const rows = instances.map(({ dataValues }) =>
    written.map((attribute) => (attribute in instead ? instead[attribute] : dataValues[attribute])),
  );
  return { sql: 'INSERT INTO ?? (??) VALUES ?', values: [tableName, columns, rows] };
}

/** A model's instance from a row with the table's column names as keys. */
export function instanceOf<M extends Model>(model: ModelStatic<M>, row: Record<string, unknown>): M {
  const values: Record<string, unknown> = {};
  for (const [attribute, { field = attribute }] of Object.entries(model.rawAttributes)) values[attribute] = row[field];
  return model.build(values as never, { isNewRecord: false, raw: true });
}

/** The values of an object's fields by column name. */
export function asRow<Field extends string>(
  columnOf: Readonly<Record<Field, string>>,
  values: Readonly<Partial<Record<Field, unknown>>>,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).map(([field, value]) => [columnOf[field as Field], value]));
}

/** A connection's promise interface. It costs as much to make as a statement to send, so it is kept. */
const promising = oneFor((connection: CallbackConnection): Connection => connection.promise());

function connectionOf(tx: Transaction): Connection {
  return promising((tx as unknown as { connection: CallbackConnection }).connection);
}
