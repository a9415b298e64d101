import { randomBytes } from 'node:crypto';
import mysql, { type Connection } from 'mysql2/promise';
import { LeftOut } from '../../integrations/databases/dump/leftOut.ts';
import { createTenantServer } from '../../integrations/databases/tenantServer.ts';
import type { Fill, WantedDatabase } from '../../integrations/databases/types.ts';
import { tenantServer } from '../support/runServer.ts';

const password = 'aPassword1';

/**
 * Databases on the server of this test run, with their dumps and databases restored from those. `close` removes them.
 */
export async function dumpedDatabases() {
  const { ATRIUM_TENANT_DATABASE_URL: url = '', ATRIUM_TENANT_DATABASE_ADMIN_PORT: port } = await tenantServer();
  const server = createTenantServer({ url, adminPort: Number(port) }, { maxConnections: 5, queryMs: 60_000 });
  const isMariaDb = !(await server.settings()).version.startsWith('MySQL');
  const prefix = `b${randomBytes(3).toString('hex')}`;
  const signal = new AbortController().signal;
  const made: WantedDatabase[] = [];
  const open: Connection[] = [];
  const newName = () => prefix + randomBytes(6).toString('hex');
  const [userOf, keeperOf] = [0, 1].map((at) => (database: WantedDatabase) => String(database.accounts[at]?.user)) as [
    (database: WantedDatabase) => string,
    (database: WantedDatabase) => string,
  ];

  /** A database that the server does not have yet. */
  function wanted(): WantedDatabase {
    const name = newName();
    const account = { password, previous: undefined, setsPasswords: false, isRevoked: false, isCut: false };
    const accounts = [
      { ...account, user: `${name}u`, onlyReads: false },
      { ...account, user: `${name}k`, onlyReads: true },
    ];
    const database = { name, state: 'open' as const, isFull: false, compacts: false, accounts };
    made.push(database);
    return database;
  }

  // Keyed by the user, since the database's name changes while it is made.
  const align = (database: WantedDatabase) => server.align(userOf(database), async () => database);

  async function enter(database: WantedDatabase, user: string): Promise<Connection> {
    const { host, port } = server;
    const dates = { dateStrings: true }; // some of these dates are invalid in JavaScript
    const connection = await mysql.createConnection({ host, port, user, password, database: database.name, ...dates });
    connection.on('error', () => undefined);
    open.push(connection);
    return connection;
  }

  return {
    server,
    isMariaDb,
    wanted,
    align,

    async make(): Promise<WantedDatabase> {
      const database = wanted();
      await align(database);
      return database;
    },

    /** The connection details of its tenant. */
    accountOf: (database: WantedDatabase) => ({ user: userOf(database), password, database: database.name }),

    /** Connects as its tenant. */
    connect: (database: WantedDatabase) => enter(database, userOf(database)),

    /** Connects as the account that makes backups. */
    connectKeeper: (database: WantedDatabase) => enter(database, keeperOf(database)),

    /** The dump that its keeper reads, while `work` runs. */
    read: <T>(database: WantedDatabase, work: (lines: AsyncIterable<Buffer>) => Promise<T>): Promise<T> =>
      server.dump({ user: keeperOf(database), password, database: database.name }, signal, work),

    dump(database: WantedDatabase): Promise<Buffer> {
      return this.read(database, async (lines) => Buffer.concat(await Array.fromAsync(lines)));
    },

    /** Fills a database from a dump. Each attempt gives it a new name. */
    fill(database: WantedDatabase, read: Fill['read'], leftOut = new LeftOut()): Promise<unknown> {
      const begin = async () => {
        database.name = newName();
        return database.name;
      };
      return align({ ...database, fill: { user: userOf(database), begin, signal, read, leftOut } });
    },

    async restore(bytes: Buffer): Promise<WantedDatabase> {
      const database = wanted();
      await this.fill(database, (take) => take(partsOf(bytes)));
      return database;
    },

    async close(): Promise<void> {
      for (const connection of open) connection.destroy();
      for (const database of made) await align({ ...database, state: 'gone' });
    },
  };
}

export type DumpedDatabases = Awaited<ReturnType<typeof dumpedDatabases>>;

async function* partsOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 1_000) yield bytes.subarray(at, at + 1_000);
}
