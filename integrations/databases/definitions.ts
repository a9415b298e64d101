import type { TenantConnection } from './connection.ts';
import { TenantServerError } from './errors.ts';
import type { DatabaseSize } from './types.ts';

const databasesAtOnce = 20;
/** The time limit of a query. It is enough for a normal database. After a timeout, the database is looked at again. */
const lookMs = 2_000;

interface Counted {
  number: number | string;
  bytes: number | string | null;
}

/**
 * The number and text size of views, functions, procedures and triggers, which are not in the files of tables. The
 * server has to open many of them to answer, so each look asks for only a few databases, in turn.
 */
export class DefinitionSizes {
  readonly #known = new Map<string, DatabaseSize>();
  #after = '';

  /** The last known sizes of the databases whose names begin with `prefix`. */
  async look(connection: TenantConnection, prefix: string): Promise<ReadonlyMap<string, DatabaseSize>> {
    const rows = await connection.rows<{ name: string }>(
      'SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE ?',
      [`${prefix}%`],
    );
    const names = rows.map(({ name }) => name).sort();
    const there = new Set(names);
    for (const name of this.#known.keys()) if (!there.has(name)) this.#known.delete(name);
    const later = names.filter((name) => name > this.#after);
    const next = (later.length > 0 ? later : names).slice(0, databasesAtOnce);
    for (const name of next) {
      this.#after = name;
      const size = await sizeOfDefinitions(connection, name);
      if (size === undefined) continue;
      if (size.tables > 0) this.#known.set(name, size);
      else this.#known.delete(name);
    }
    return this.#known;
  }
}

/** Undefined if it took too long. */
async function sizeOfDefinitions(connection: TenantConnection, name: string): Promise<DatabaseSize | undefined> {
  let size: DatabaseSize = { bytes: 0, tables: 0 };
  try {
    for (const sql of connection.isMariaDb ? onMariaDb : onMySql) {
      const [row] = await connection.rows<Counted>(sql, [name]);
      size = { bytes: size.bytes + Number(row?.bytes ?? 0), tables: size.tables + Number(row?.number ?? 0) };
    }
    return size;
  } catch (error) {
    if (error instanceof TenantServerError && tookTooLong.has(error.errno)) return undefined;
    throw error;
  }
}

const tookTooLong: ReadonlySet<number | undefined> = new Set([1969, 3024]);

const counted = (text: string, table: string, schema: string) =>
  `COUNT(*) AS number, SUM(${text}) AS bytes FROM ${table} WHERE ${schema} = ?`;
const views = counted('LENGTH(VIEW_DEFINITION)', 'information_schema.VIEWS', 'TABLE_SCHEMA');
const triggers = counted('LENGTH(ACTION_STATEMENT)', 'information_schema.TRIGGERS', 'TRIGGER_SCHEMA');
const bounded = [
  `SET STATEMENT max_statement_time = ${lookMs / 1_000} FOR SELECT`,
  `SELECT /*+ MAX_EXECUTION_TIME(${lookMs}) */`,
];

const onMariaDb = [counted('LENGTH(body) + LENGTH(body_utf8)', 'mysql.proc', 'db'), views, triggers].map(
  (rest) => `${bounded[0]} ${rest}`,
);
const onMySql = [
  counted('LENGTH(ROUTINE_DEFINITION)', 'information_schema.ROUTINES', 'ROUTINE_SCHEMA'),
  views,
  triggers,
].map((rest) => `${bounded[1]} ${rest}`);
