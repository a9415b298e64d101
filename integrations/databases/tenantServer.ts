import { Places } from '../../base/places.ts';
import { withAccountConnection } from './accountConnection.ts';
import { alignDatabase, endConnections } from './align.ts';
import { type Answer, type AskOptions, askDatabase } from './askDatabase.ts';
import { type TenantAddress, type TenantConnection, withTenantConnection } from './connection.ts';
import { CpuShares, type TenantsOf } from './cpuShares.ts';
import { DefinitionSizes } from './definitions.ts';
import { dumpDatabase } from './dump/dump.ts';
import { linesOf } from './dump/entries.ts';
import type { LeftOut } from './dump/leftOut.ts';
import { fenceName, takeFence } from './fence.ts';
import { fillDatabase } from './fill.ts';
import { PreparedTransactions } from './preparedTransactions.ts';
import { addSizes, FileSizes } from './sizes.ts';
import { endLargeTemporary } from './temporaryFiles.ts';
import type { AccountLimits, DatabaseSize, Found, WantedDatabase } from './types.ts';
import { UndoWatch } from './undo.ts';
import { endLongStatements, patience, type WatchOptions, watchServer } from './watchdog.ts';

export interface TenantSettings {
  version: string;
  /** True if a statement can ask for a file of the client. */
  localInfile: boolean;
  eventScheduler: boolean;
  /** True if tenants may make functions and triggers. */
  functions: boolean;
  /** True if it looks up host names. Then it counts connection errors against the host. */
  resolvesNames: boolean;
  /** True if tenants can make in-memory tables, each of which may take as much memory as a session. */
  memoryTables: boolean;
  /** True if Atrium sees how long a procedure runs. On MySQL this needs the performance schema. */
  durations: boolean;
  /** True if any user has rights in a database, such as in `test` on a server that was not secured. */
  isOpenToAll: boolean;
  /** True if the temporary disk space of a statement is limited. On MySQL the watchdog does that. */
  boundsTemporary: boolean;
}

const accountsOnMariaDb = `
  SELECT User AS name, IFNULL(JSON_VALUE(Priv, '$.account_locked'), '0') IN ('1', 'true') AS isLocked
    FROM mysql.global_priv WHERE (User LIKE ? OR User LIKE ?) AND Host = '%'`;
const accountsOnMySql = `
  SELECT User AS name, account_locked = 'Y' AS isLocked FROM mysql.user
   WHERE (User LIKE ? OR User LIKE ?) AND Host = '%'`;

const namesOf = (rows: { name: string }[]) => rows.map(({ name }) => name);
type Setting =
  | 'isLocal'
  | 'scheduled'
  | 'isLogged'
  | 'isTrusted'
  | 'isWatched'
  | 'skipsNames'
  | 'engines'
  | 'temporary';
const isOn = (value: unknown) => value === 1 || value === 'ON';

/** A server has few connections for administrators, and the watchdog needs some of them. */
const alignedAtOnce = 8;

type DatabaseSizes = ReadonlyMap<string, DatabaseSize>;

/** The prefixes of account names: tenants' accounts, and those that read for backups. */
interface AccountNames {
  user: string;
  keeper: string;
}

/** The limit for reading a table as slowly as the store takes it. A backup may take {@link patience} times as long. */
const readingMs = 2 * 3_600_000;

/** The server for databases of spaces, which has no other use. */
export function createTenantServer(address: TenantAddress, limits: AccountLimits) {
  const { hostname, port } = new URL(address.url);
  const place = { host: hostname, port: port === '' ? 3306 : Number(port) };
  const prepared = new PreparedTransactions();
  const turns = new Places({ all: alignedAtOnce });
  const endOldPrepared = (connection: TenantConnection, most?: number) =>
    prepared.endOld(connection, limits.queryMs * patience, most);
  const watchedOf = ({ user, keeper }: AccountNames) => [
    { prefix: user, queryMs: limits.queryMs },
    { prefix: keeper, queryMs: limits.readingMs ?? readingMs },
  ];
  return {
    /** The address for clients. */
    ...place,

    /**
     * Aligns the server with the wanted database, and returns that. `read` is called once this worker is alone: an
     * earlier worker was stopped and changes nothing any more. All workers on a database use the same `key`. Throws
     * {@link TenantServerError}. May be repeated.
     */
    async align<T extends WantedDatabase>(key: string, read: () => Promise<T | undefined>): Promise<T | undefined> {
      using _turn = await turns.take();
      return await withTenantConnection(address, async (connection) => {
        await takeFence(connection, fenceName(address.url, key));
        const database = await read();
        if (database?.fill !== undefined) await fillDatabase({ connection, place, limits }, database, database.fill);
        else if (database !== undefined) await alignDatabase(connection, database, limits);
        return database;
      });
    },

    /** The databases and accounts whose names have these prefixes. */
    find: ({ database, user, keeper = user }: { database: string; user: string; keeper?: string }): Promise<Found> =>
      withTenantConnection(address, async (connection) => {
        const databases = await connection.rows<{ name: string }>(
          'SELECT SCHEMA_NAME AS name FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE ?',
          [`${database}%`],
        );
        const users = await connection.rows<{ name: string; isLocked: number }>(
          connection.isMariaDb ? accountsOnMariaDb : accountsOnMySql,
          [`${user}%`, `${keeper}%`],
        );
        const locked = users.filter(({ isLocked }) => Number(isLocked) === 1);
        return { databases: namesOf(databases), users: namesOf(users), locked: namesOf(locked) };
      }),

    /** Ends statements that exceed their limit, of accounts with these prefixes. Returns their number. */
    endLongStatements: (names: AccountNames, undo?: UndoWatch): Promise<number> =>
      withTenantConnection(address, (connection) => endLongStatements(connection, watchedOf(names), undo)),

    /** Rolls back prepared transactions that were seen first too long ago, or are too many. */
    endAbandoned: (most?: number): Promise<number> =>
      withTenantConnection(address, (connection) => endOldPrepared(connection, most)),

    /**
     * Does both every second until it is aborted. With `tenantsOf`, the server is on this machine: then the CPU is
     * shared out, and connections with too large temporary tables are ended.
     */
    async watch(names: AccountNames, options: WatchOptions & { tenantsOf?: TenantsOf | undefined }): Promise<void> {
      const undo = new UndoWatch();
      const statements = (connection: TenantConnection) => endLongStatements(connection, watchedOf(names), undo);
      const { tenantsOf } = options;
      const prefixes = [names.user, names.keeper];
      const shares = tenantsOf && new CpuShares(prefixes, tenantsOf);
      const onThisMachine = async (connection: TenantConnection) => {
        await shares?.look(connection);
        await endLargeTemporary(connection, prefixes);
      };
      // On separate connections, because a rollback takes as long as the work that it undoes.
      await Promise.all([
        watchServer(address, statements, options),
        watchServer(address, (connection) => endOldPrepared(connection), options),
        shares && watchServer(address, onThisMachine, options),
      ]);
    },

    /**
     * Passes the content of a database to `work`. The account must be read-only there. A worker that still reads with
     * it counts as lost, and is stopped. Throws {@link TenantServerError}, and {@link RowTooLarge} with the table. What
     * the dump lacks is added to `leftOut` as the bytes are read.
     */
    dump: <T>(
      account: { user: string; password: string; database: string },
      signal: AbortSignal,
      work: (bytes: AsyncIterable<Buffer>) => Promise<T>,
      leftOut?: LeftOut,
    ): Promise<T> =>
      withTenantConnection(address, async (admin) => {
        await takeFence(admin, fenceName(address.url, `${account.database}/reading`));
        await endConnections(admin, [account.user]);
        try {
          return await withAccountConnection({ ...place, ...account }, signal, (connection) =>
            work(linesOf(dumpDatabase(connection, admin, account.database, { leftOut }))),
          );
        } finally {
          // The server continues a statement whose client is gone. If this fails, the watchdog ends the statement.
          await endConnections(admin, [account.user]).catch(() => undefined);
        }
      }),

    /** The server's answer to one statement of an account. */
    ask: (
      account: { user: string; password: string; database: string },
      sql: string,
      options: AskOptions,
    ): Promise<Answer> => askDatabase({ ...place, ...account }, sql, options),

    /**
     * Measures the databases with this prefix until it is aborted. `defined` is the part of each size that is views,
     * functions, procedures and triggers.
     */
    watchSizes: (
      prefix: string,
      onSizes: (sizes: DatabaseSizes, defined: DatabaseSizes) => Promise<void>,
      options: WatchOptions,
    ): Promise<void> => {
      const [files, definitions] = [new FileSizes(), new DefinitionSizes()];
      const look = async (connection: TenantConnection) => {
        const defined = await definitions.look(connection, prefix);
        await onSizes(addSizes(await files.look(connection, prefix), defined), defined);
      };
      return watchServer(address, look, options);
    },

    /** Measures once, for few databases. */
    sizes: (prefix: string): Promise<Map<string, DatabaseSize>> =>
      withTenantConnection(address, async (connection) =>
        addSizes(await new FileSizes().look(connection, prefix), await new DefinitionSizes().look(connection, prefix)),
      ),

    /** The server's version, and settings that matter to tenants. */
    settings: (): Promise<TenantSettings> =>
      withTenantConnection(address, async ({ version, isMariaDb, rows }) => {
        const [row] = await rows<Record<Setting, string | number>>(
          `SELECT @@local_infile AS isLocal, @@event_scheduler AS scheduled, @@log_bin AS isLogged,
            @@log_bin_trust_function_creators AS isTrusted, @@performance_schema AS isWatched,
            @@skip_name_resolve AS skipsNames,
            ${isMariaDb ? '@@enforce_storage_engine' : '@@disabled_storage_engines'} AS engines,
            ${isMariaDb ? '@@tmp_disk_table_size' : '0'} AS temporary`,
        );
        const ofAll = await rows(
          "SELECT 1 FROM mysql.db WHERE User = '' UNION SELECT 1 FROM mysql.user WHERE User = ''",
        );
        return {
          version: isMariaDb ? version : `MySQL ${version}`,
          localInfile: isOn(row?.isLocal),
          eventScheduler: isOn(row?.scheduled),
          functions: isOn(row?.isTrusted) || (isMariaDb && !isOn(row?.isLogged)),
          resolvesNames: !isOn(row?.skipsNames),
          memoryTables: !(isMariaDb ? /^innodb$/i : /\bmemory\b/i).test(String(row?.engines)),
          durations: isMariaDb || isOn(row?.isWatched),
          boundsTemporary: Number(row?.temporary) < 2 ** 40,
          isOpenToAll: ofAll.length > 0,
        };
      }),
  };
}

export type TenantServer = ReturnType<typeof createTenantServer>;
