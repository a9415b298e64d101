import { randomBytes } from 'node:crypto';
import mysql, { type Connection } from 'mysql2/promise';
import { withTenantConnection } from '../../../integrations/databases/connection.ts';
import { createTenantServer, type TenantServer } from '../../../integrations/databases/tenantServer.ts';
import type { WantedDatabase } from '../../../integrations/databases/types.ts';
import { UndoWatch } from '../../../integrations/databases/undo.ts';
import { tenantServer } from '../../support/runServer.ts';
import { sizeOf } from '../../support/size.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts';
import { waitFor } from '../../support/waitFor.ts';

// The rights and limits of a tenant on the shared server of this test run: MariaDB or MySQL.

const prefix = `t${randomBytes(3).toString('hex')}`;
const limits = { maxConnections: 3, queryMs: 60_000 };
const password = 'aPassword1';

let address: { url: string; adminPort: number };
let server: TenantServer;
let isMariaDb: boolean;
const made: WantedDatabase[] = [];
const open: Connection[] = [];

beforeAll(async () => {
  const { ATRIUM_TENANT_DATABASE_URL: url = '', ATRIUM_TENANT_DATABASE_ADMIN_PORT: port } = await tenantServer();
  address = { url, adminPort: Number(port) };
  server = createTenantServer(address, limits);
  isMariaDb = !(await server.settings()).version.startsWith('MySQL');
});
afterAll(async () => {
  for (const connection of open) connection.destroy();
  for (const database of made) await align({ ...database, state: 'gone' });
});

/** A tenant's database with one account. Its name has a `_`, which GRANT takes for any character. */
function wanted(name = `${prefix}_${randomBytes(4).toString('hex')}`): WantedDatabase {
  const account = {
    ...{ user: `${name}u`, password, previous: undefined },
    ...{ setsPasswords: false, isRevoked: false, isCut: false, onlyReads: false },
  };
  const database: WantedDatabase = { name, state: 'open', isFull: false, compacts: false, accounts: [account] };
  made.push(database);
  return database;
}

async function align(database: WantedDatabase, on = server): Promise<void> {
  await on.align(database.name, async () => database);
}

async function make(name?: string): Promise<WantedDatabase> {
  const database = wanted(name);
  await align(database);
  return database;
}

async function connect(database: WantedDatabase, secret = password): Promise<Connection> {
  const connection = await mysql.createConnection({
    host: server.host,
    port: server.port,
    user: database.accounts[0]?.user,
    password: secret,
    database: database.name,
  });
  connection.on('error', () => undefined); // tests let the server end it
  open.push(connection);
  return connection;
}

/** The error number of a refused statement. Undefined if the server ran it. */
async function refusal(connection: Connection, sql: string): Promise<number | undefined> {
  return connection.query(sql).then(
    () => undefined,
    (error: { errno: number }) => error.errno,
  );
}

/** Leaves a prepared transaction with this name, which holds a lock on a row of `notes`. */
async function prepare(connection: Connection, name: string): Promise<void> {
  const statements = [`XA START '${name}'`, 'INSERT INTO notes VALUES (1)', `XA END '${name}'`, `XA PREPARE '${name}'`];
  for (const sql of statements) await connection.query(sql);
}

test('a tenant can use everything that applications need in its own database', async () => {
  const connection = await connect(await make());
  for (const sql of [
    'CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, words TEXT)',
    "INSERT INTO notes (words) VALUES ('one'), ('two')",
    'CREATE VIEW recent AS SELECT * FROM notes',
    'CREATE TEMPORARY TABLE scratch (id INT)',
    'CREATE FUNCTION double_it(n INT) RETURNS INT DETERMINISTIC RETURN n * 2',
    'CREATE TRIGGER trims BEFORE INSERT ON notes FOR EACH ROW SET NEW.words = TRIM(NEW.words)',
    "INSERT INTO notes (words) VALUES ('  three ')",
    'ALTER TABLE notes ADD INDEX by_words (words(20))',
  ]) {
    expect([sql, await refusal(connection, sql)]).toEqual([sql, undefined]);
  }
  const [rows] = await connection.query('SELECT double_it(COUNT(*)) AS n, MAX(words) AS last FROM recent');
  expect(rows).toEqual([{ n: 6, last: 'two' }]);
});

test('a tenant cannot reach anything outside of its database', async () => {
  const name = `${prefix}_${randomBytes(4).toString('hex')}`;
  const own = await connect(await make(name));
  // The names are equal except for the character that `_` would match.
  const sibling = await make(name.replace('_', 'x'));
  const neighbour = await connect(sibling);
  await neighbour.query('CREATE TABLE private (id INT)');
  const [[row]] = (await neighbour.query('SELECT CONNECTION_ID() AS id')) as unknown as [[{ id: number }]];
  for (const sql of [
    `USE ${sibling.name}`,
    `SELECT * FROM ${sibling.name}.private`,
    `CREATE TABLE ${sibling.name}.mine (id INT)`,
    `DROP DATABASE ${sibling.name}`,
    `CREATE DATABASE ${prefix}_mine`,
    'SELECT * FROM mysql.user',
    'SHOW ENGINE INNODB STATUS',
    "SELECT 1 INTO OUTFILE '/tmp/atrium-outfile'",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE notes",
    'SET GLOBAL max_connections = 1',
    `KILL ${row.id}`,
    'FLUSH TABLES',
    "CREATE USER 'somebody'@'%'",
    `GRANT SELECT ON \`${name}\`.* TO '${sibling.accounts[0]?.user}'@'%'`,
    `ALTER USER '${own.config.user}'@'%' WITH MAX_USER_CONNECTIONS 1000`,
    "CREATE FUNCTION udf RETURNS STRING SONAME 'udf.so'",
    'CREATE EVENT later ON SCHEDULE EVERY 1 SECOND DO SELECT 1',
    "CREATE DEFINER = 'root'@'localhost' VIEW of_root AS SELECT 1",
    'SHUTDOWN',
  ]) {
    expect([sql, await refusal(own, sql)]).toEqual([sql, expect.any(Number)]);
  }
  // The tenant sees nothing of others.
  for (const [table, column] of [
    ['SCHEMATA', 'SCHEMA_NAME'],
    ['TABLES', 'TABLE_SCHEMA'],
  ]) {
    const [seen] = await own.query(`SELECT 1 FROM information_schema.${table} WHERE ${column} = ?`, [sibling.name]);
    expect(seen).toEqual([]);
  }
  const [threads] = await own.query('SELECT DISTINCT USER AS user FROM information_schema.PROCESSLIST');
  expect(threads).toEqual([{ user: own.config.user }]);
});

test('a tenant can only create InnoDB tables, since other engines have no limit', async () => {
  const connection = await connect(await make());
  for (const sql of [
    'CREATE TABLE quick (id INT) ENGINE=MEMORY',
    'CREATE TEMPORARY TABLE quick (id INT) ENGINE=MEMORY',
    'CREATE TABLE quick (id INT) ENGINE=MyISAM',
    'SET SESSION enforce_storage_engine = NULL',
    "SET SESSION disabled_storage_engines = ''",
  ]) {
    expect([sql, await refusal(connection, sql)]).toEqual([sql, expect.any(Number)]);
  }
  // Dumps set their own SQL mode, in which the server may replace another engine by InnoDB.
  await connection.query("SET SESSION sql_mode = ''");
  await connection.query('CREATE TABLE plain (id INT, words TEXT)');
  await refusal(connection, 'CREATE TABLE quick (id INT) ENGINE=MEMORY');
  await refusal(connection, 'ALTER TABLE plain ENGINE=MyISAM');
  const sql = 'SELECT DISTINCT ENGINE AS engine FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()';
  expect((await connection.query(sql))[0]).toEqual([{ engine: 'InnoDB' }]);
  // Temporary tables still work.
  await connection.query('CREATE TEMPORARY TABLE scratch (id INT, words TEXT)');
  await connection.query("INSERT INTO scratch VALUES (2, 'b'), (1, 'a'), (1, 'a')");
  const [rows] = await connection.query('SELECT words, COUNT(*) AS n FROM scratch GROUP BY words ORDER BY n DESC');
  expect(rows).toEqual([
    { words: 'a', n: 2 },
    { words: 'b', n: 1 },
  ]);
});

test('the server does not read files of the client, even if the client would allow it', async () => {
  const database = await make();
  const connection = await mysql.createConnection({
    host: server.host,
    port: server.port,
    user: database.accounts[0]?.user,
    password,
    database: database.name,
    infileStreamFactory: () => {
      throw new Error('A file was asked for.');
    },
  });
  open.push(connection);
  await connection.query('CREATE TABLE notes (words TEXT)');
  expect(await refusal(connection, "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE notes")).toEqual(
    expect.any(Number),
  );
});

test('a tenant has a limited number of connections, and its neighbour has its own', async () => {
  const database = await make();
  await Promise.all([connect(database), connect(database), connect(database)]);
  await expect(connect(database)).rejects.toMatchObject({ errno: 1226 });
  await expect(connect(await make())).resolves.toBeDefined();
});

test('a new password works beside the previous one until that is removed', async () => {
  const database = await make();
  const [account] = database.accounts;
  if (account === undefined) throw new Error('It has an account.');
  const rotated = { ...account, password: 'another1', previous: password, setsPasswords: true };
  const works = async (secret: string) =>
    connect(database, secret).then(
      (connection) => {
        connection.destroy();
        return true;
      },
      () => false,
    );
  // Align twice, as after a crash.
  for (const _attempt of [1, 2]) await align({ ...database, accounts: [rotated] });
  expect(await Promise.all(['another1', password, 'wrong'].map(works))).toEqual([true, true, false]);
  await align({ ...database, accounts: [{ ...rotated, previous: undefined }] });
  expect(await Promise.all(['another1', password].map(works))).toEqual([true, false]);
});

test('a locked database ends its connections and refuses new ones, and an opened one has its committed data', async () => {
  const database = await make();
  const connection = await connect(database);
  await connection.query('CREATE TABLE notes (id INT)');
  await connection.query('START TRANSACTION');
  await connection.query('INSERT INTO notes VALUES (1)');
  await align({ ...database, state: 'locked' });
  await expect(connection.query('SELECT 1')).rejects.toBeDefined();
  await expect(connect(database)).rejects.toBeDefined();
  await align(database);
  const again = await connect(database);
  expect((await again.query('SELECT * FROM notes'))[0]).toEqual([]);
});

test('a database is removed completely, also with open and prepared transactions of its tenant', async () => {
  const database = await make();
  const connection = await connect(database);
  await connection.query('CREATE TABLE notes (id INT PRIMARY KEY) ENGINE=InnoDB');
  const idle = await connect(database);
  await idle.query('START TRANSACTION');
  await idle.query('SELECT * FROM notes');
  await prepare(connection, database.name);
  connection.destroy();
  // The server does not tell whose prepared transactions are whose, so a neighbour's must be left alone.
  const neighbour = await make();
  const theirs = await connect(neighbour);
  await theirs.query('CREATE TABLE notes (id INT PRIMARY KEY) ENGINE=InnoDB');
  await prepare(theirs, neighbour.name);
  theirs.destroy();
  await expect(align({ ...database, state: 'gone' })).rejects.toThrow('(1205)');
  const again = await connect(neighbour);
  await again.query(`XA COMMIT '${neighbour.name}'`);
  expect((await again.query('SELECT * FROM notes'))[0]).toEqual([{ id: 1 }]);
  const hurried = createTenantServer(address, { ...limits, queryMs: 500 });
  await waitFor('the abandoned transaction to end', async () => (await hurried.endAbandoned()) > 0);
  await align({ ...database, state: 'gone' });
  const names = { database: database.name, user: database.accounts[0]?.user ?? '' };
  expect(await server.find(names)).toEqual({ databases: [], users: [], locked: [] });
  // Remove again, as after a crash.
  await align({ ...database, state: 'gone' });
});

test('a statement is ended at its time limit, also if the session has removed its own limit', async () => {
  const database = await make();
  const connection = await connect(database);
  if (isMariaDb) await connection.query('SET SESSION max_statement_time = 0');
  const hurried = createTenantServer(address, { ...limits, queryMs: 1_000 });
  // A loop of short statements counts as one statement.
  await connection.query('CREATE PROCEDURE loops() BEGIN WHILE TRUE DO DO SLEEP(0.2); END WHILE; END');
  for (const sql of ['SELECT SLEEP(600)', 'CALL loops()']) {
    let isOver = false;
    const over = refusal(connection, sql).then(() => {
      isOver = true;
    });
    await waitFor('the end of the statement', async () => {
      await hurried.endLongStatements({ user: prefix, keeper: 'none' });
      return isOver;
    });
    await over;
  }
});

test('a statement with invalid UTF-8 does not hide from the watchdog', async () => {
  const database = await make();
  const connection = await connect(database);
  let isOver = false;
  const over = connection.execute('SELECT SLEEP(600), ?', [Buffer.from([0xfa, 0xff, 0xc0])]).finally(() => {
    isOver = true;
  });
  const ended = expect(
    over.then(
      () => 'ended',
      () => 'ended',
    ),
  ).resolves.toBe('ended');
  const hurried = createTenantServer(address, { ...limits, queryMs: 1_000 });
  await waitFor('the end of the statement', async () => {
    await hurried.endLongStatements({ user: prefix, keeper: 'none' });
    return isOver;
  });
  await ended;
});

test('the keeper account has its own, longer time limit', async () => {
  const connection = await connect(await make());
  const names = { user: 'none', keeper: prefix };
  const asked = refusal(connection, 'SELECT SLEEP(600)');
  await createTenantServer(address, { ...limits, queryMs: 1 }).endLongStatements(names);
  const hurried = createTenantServer(address, { ...limits, readingMs: 1_000 });
  await waitFor('the end of the statement', async () => (await hurried.endLongStatements(names)) > 0);
  await asked;
});

test('an idle open transaction is ended with its connection', async () => {
  const connection = await connect(await make());
  await connection.query('CREATE TABLE notes (id INT) ENGINE=InnoDB');
  await connection.query('START TRANSACTION');
  await connection.query('INSERT INTO notes VALUES (1)');
  const hurried = createTenantServer(address, { ...limits, queryMs: 1_000 });
  const isClosed = new Promise<void>((resolve) => {
    connection.on('error', () => resolve());
    connection.on('end', () => resolve());
  });
  await waitFor('the end', async () => (await hurried.endLongStatements({ user: prefix, keeper: 'none' })) > 0);
  await isClosed;
  await expect(connection.query('SELECT 1')).rejects.toBeDefined();
});

test('a transaction is ended after its time limit, although its session stays active', async () => {
  const connection = await connect(await make());
  // MySQL's process list counts from this timestamp.
  await connection.query('SET TIMESTAMP = 2000000000');
  await connection.query('START TRANSACTION WITH CONSISTENT SNAPSHOT');
  const hurried = createTenantServer(address, { ...limits, queryMs: 1_000 });
  await waitFor('the end of the transaction', async () => {
    await hurried.endLongStatements({ user: prefix, keeper: 'none' });
    return connection.query('SELECT 1').then(
      () => false,
      () => true,
    );
  });
});

test('a transaction with a growing undo log is ended, and a later one of another tenant goes on', async () => {
  const large = await connect(await make());
  await large.query('CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(1000))');
  await large.query("INSERT INTO notes (words) VALUES (REPEAT('x', 1000))");
  for (let times = 0; times < 11; times++) await large.query('INSERT INTO notes (words) SELECT words FROM notes');
  const small = await connect(await make());
  await small.query('CREATE TABLE notes (id INT)');
  await large.query('START TRANSACTION');
  await large.query('DELETE FROM notes WHERE id = 1');
  await small.query('START TRANSACTION');
  await small.query('INSERT INTO notes VALUES (1)');
  const undo = new UndoWatch(1);
  await waitFor('the end of the transaction', async () => {
    await server.endLongStatements({ user: prefix, keeper: 'none' }, undo);
    return large.query('UPDATE notes SET words = REPEAT(CHAR(65 + FLOOR(26 * RAND())), 1000)').then(
      () => false,
      () => true,
    );
  });
  await small.query('COMMIT');
  expect((await small.query('SELECT id FROM notes'))[0]).toEqual([{ id: 1 }]);
});

test('an abandoned prepared transaction is rolled back after its time limit', async () => {
  const database = await make();
  const connection = await connect(database);
  await connection.query('CREATE TABLE notes (id INT PRIMARY KEY) ENGINE=InnoDB');
  await prepare(connection, database.name);
  const hurried = createTenantServer(address, { ...limits, queryMs: 500 });
  // A prepared transaction is left alone while its connection is open.
  await hurried.endAbandoned();
  connection.destroy();
  await waitFor('the transaction to be rolled back', async () => (await hurried.endAbandoned()) > 0);
  const again = await connect(database);
  expect(await refusal(again, 'INSERT INTO notes VALUES (1)')).toBeUndefined();
});

test('if there are too many prepared transactions, the oldest are rolled back early', async () => {
  const database = await make();
  const connection = await connect(database);
  await connection.query('CREATE TABLE notes (id INT PRIMARY KEY) ENGINE=InnoDB');
  await prepare(connection, database.name);
  const patient = createTenantServer(address, limits);
  await patient.endAbandoned();
  connection.destroy();
  // The server takes a moment to notice that the connection is closed.
  await waitFor('the transaction to be rolled back', async () => (await patient.endAbandoned(0)) > 0);
  expect(await refusal(await connect(database), 'INSERT INTO notes VALUES (1)')).toBeUndefined();
});

describe('a database that is too large', () => {
  test('can be read and emptied, but not written, also over open connections', async () => {
    const database = await make();
    const before = await connect(database);
    await before.query('CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, words TEXT)');
    await before.query("INSERT INTO notes (words) VALUES ('one'), ('two')");
    await before.query('CREATE PROCEDURE adds() INSERT INTO notes (words) VALUES (1)');
    const accounts = database.accounts.map((account) => ({ ...account, isCut: true }));
    const full = { ...database, accounts, isFull: true };
    for (const _attempt of [1, 2]) await align(full);
    await expect(before.query('SELECT 1')).rejects.toBeDefined();
    const connection = await connect(database);
    for (const sql of [
      "INSERT INTO notes (words) VALUES ('three')",
      "UPDATE notes SET words = REPEAT('x', 1000)",
      'REPLACE INTO notes (id) VALUES (1)',
      'CREATE TABLE more (id INT)',
      'CREATE TABLE more AS SELECT * FROM notes',
      'CREATE TEMPORARY TABLE more (id INT)',
      'ALTER TABLE notes ADD COLUMN more INT',
      'CREATE INDEX by_words ON notes (words(10))',
      'CALL adds()',
      'CREATE VIEW more AS SELECT 1',
    ]) {
      expect([sql, await refusal(connection, sql)]).toEqual([sql, expect.any(Number)]);
    }
    await connection.query('DELETE FROM notes WHERE id = 1');
    expect((await connection.query('SELECT words FROM notes'))[0]).toEqual([{ words: 'two' }]);
    await align({ ...database, accounts, isFull: false });
    await (await connect(database)).query("INSERT INTO notes (words) VALUES ('three')");
    await (await connect(database)).query('DROP TABLE notes');
  });

  test('is measured by its files, which a compaction makes smaller', async () => {
    const database = await make();
    const sizeOfIt = async () => (await server.sizes(database.name)).get(database.name);
    expect(await sizeOfIt()).toBeUndefined();
    const connection = await connect(database);
    await connection.query('CREATE TABLE `odd``name` (id INT PRIMARY KEY AUTO_INCREMENT, words LONGTEXT)');
    await connection.query("INSERT INTO `odd``name` (words) VALUES (REPEAT('x', 8000000)), (REPEAT('x', 8000000))");
    await waitFor('the files to have grown', async () => ((await sizeOfIt())?.bytes ?? 0) > 16_000_000);
    await connection.query('DELETE FROM `odd``name`');
    await connection.query('CREATE VIEW seen AS SELECT * FROM `odd``name`');
    await align({ ...database, compacts: true });
    expect(await sizeOfIt()).toMatchObject({ tables: 2 });
    expect((await sizeOfIt())?.bytes).toBeLessThan(4_000_000);
    await connection.query("INSERT INTO `odd``name` (words) VALUES ('it works')");
  });
});

test('a tenant who locks tables does not keep the databases from being measured', async () => {
  if (!isMariaDb) return;
  const database = await make();
  const [holder, locker, onlooker] = [await connect(database), await connect(database), await connect(database)];
  const names = Array.from({ length: 8 }, (_, n) => `t${n}`);
  for (const name of [...names, 'cut_off', 'zz']) await holder.query(`CREATE TABLE ${name} (id INT) ENGINE = InnoDB`);
  // A table without its file looks like one that the server has not opened yet.
  await holder.query('ALTER TABLE cut_off DISCARD TABLESPACE');
  await holder.query('BEGIN');
  await holder.query('SELECT * FROM zz');
  // The tables are locked in the order of their names, and the last lock has to wait.
  const renamed = locker.query(`RENAME TABLE ${names.map((name) => `${name} TO u${name}`).join()}, zz TO zzz`);
  await onlooker.query('SET lock_wait_timeout = 1');
  await waitFor('the locks', async () => (await refusal(onlooker, 'SELECT * FROM t0')) !== undefined);
  expect((await server.sizes(database.name)).get(database.name)?.tables).toBeGreaterThanOrEqual(9);
  await holder.query('COMMIT');
  await renamed;
});

test('definitions count towards the size of a database, and with too many of them it refuses new triggers', async () => {
  const database = await make();
  const connection = await connect(database);
  await connection.query('CREATE TABLE notes (id INT)');
  const before = (await server.sizes(database.name)).get(database.name);
  const words = 'x'.repeat(200_000);
  for (const sql of [
    `CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN LENGTH('${words}')`,
    `CREATE PROCEDURE p() SELECT '${words}'`,
    `CREATE VIEW v AS SELECT '${words}' AS words`,
    `CREATE TRIGGER t BEFORE INSERT ON notes FOR EACH ROW SET NEW.id = LENGTH('${words}')`,
  ]) {
    await connection.query(sql);
  }
  const after = (await server.sizes(database.name)).get(database.name);
  expect(after?.tables).toBe((before?.tables ?? 0) + 4);
  expect(after?.bytes).toBeGreaterThan((before?.bytes ?? 0) + 800_000);
  connection.destroy();
  await align({ ...database, isFull: true });
  const trigger = (name: string) => `CREATE TRIGGER ${name} BEFORE DELETE ON notes FOR EACH ROW SET @x = 1`;
  const makes = async (name: string) => {
    const now = await connect(database);
    return refusal(now, trigger(name)).finally(() => now.destroy());
  };
  expect(await makes('a')).toBeUndefined();
  await align({ ...database, isFull: true, isFullOfDefinitions: true });
  expect(await makes('b')).toBe(1142);
  await align(database);
  expect(await makes('b')).toBeUndefined();
});

test("on MySQL, a database with a table in the server's own tablespace counts as too large", async () => {
  if (isMariaDb) return;
  const database = await make();
  const connection = await connect(database);
  await connection.query('CREATE TABLE notes (id INT PRIMARY KEY) TABLESPACE innodb_system');
  expect((await server.sizes(database.name)).get(database.name)?.bytes).toBeGreaterThan(2 ** 40);
  await connection.query('DROP TABLE notes');
  expect((await server.sizes(database.name)).get(database.name)).toBeUndefined();
});

test('runFor ends a statement at its time limit or an abort, and the connection stays usable', async () => {
  const { url, adminPort } = address;
  const found = await withTenantConnection({ url, adminPort }, async (connection) => [
    await connection.runFor('DO SLEEP(600)', 500),
    await connection.runFor('DO SLEEP(600)', 600_000, AbortSignal.timeout(500)),
    await connection.runFor('DO SLEEP(0)', 60_000),
    await connection.rows('SELECT 1 AS one'),
  ]);
  expect(found).toEqual([false, false, true, [{ one: 1 }]]);
});

test('a connection is closed in order, which the server does not log as aborted', async () => {
  const proxy = await startTcpProxy(() => address.url);
  const url = Object.assign(new URL(address.url), { host: new URL(proxy.url).host }).href;
  const hasQuit = proxy.loseAnswerTo('SELECT 42', '\u0001\0\0\0\u0001');
  try {
    await withTenantConnection({ url, adminPort: undefined }, (connection) => connection.rows('SELECT 42'));
    await waitFor('COM_QUIT', hasQuit);
  } finally {
    await proxy.stop();
  }
});

test('an account whose connections were cut can reconnect at once', async () => {
  const database = await make();
  const connection = await connect(database);
  await align({ ...database, accounts: database.accounts.map((account) => ({ ...account, isCut: true })) });
  await expect(connection.query('SELECT 1')).rejects.toBeDefined();
  await expect(connect(database)).resolves.toBeDefined();
});

test('a later alignment takes over, and the earlier one changes nothing any more', async () => {
  const database = await make();
  const connection = await connect(database);
  const reached = Promise.withResolvers<void>();
  const thawed = Promise.withResolvers<void>();
  const frozen = server.align(database.name, async () => {
    reached.resolve();
    await thawed.promise;
    return database;
  });
  const refused = expect(frozen).rejects.toThrow('The server for databases of spaces failed');
  await reached.promise;
  await align({ ...database, accounts: database.accounts.map((account) => ({ ...account, isRevoked: true })) });
  const users = database.accounts.map(({ user }) => user);
  expect((await server.find({ database: database.name, user: database.name })).locked).toEqual(users);
  thawed.resolve();
  await refused;
  await expect(connect(database)).rejects.toBeDefined();
  await expect(connection.query('SELECT 1')).rejects.toBeDefined();
  await align(database);
  expect(await server.find({ database: database.name, user: database.name })).toMatchObject({ users, locked: [] });
});

describe('wherever an alignment is cut off', () => {
  let proxy: TcpProxy;
  let fragile: TenantServer;
  beforeAll(async () => {
    proxy = await startTcpProxy(() => address.url);
    const url = Object.assign(new URL(address.url), { host: new URL(proxy.url).host }).href;
    fragile = createTenantServer({ url, adminPort: undefined }, limits);
  });
  afterAll(() => proxy.stop());

  /** Cuts the connection after more and more bytes of the server's answers, until the alignment succeeds. */
  async function cuttingOff(align: () => Promise<void>, look: () => Promise<void>): Promise<number> {
    for (let cuts = 0; ; cuts++) {
      proxy.cutAfter(100 + cuts * 30);
      const isDone = await align().then(
        () => true,
        () => false,
      );
      await look();
      if (isDone) return cuts;
    }
  }

  test('an account that can enter has its rights, and the next attempt completes the database', async () => {
    let database = wanted();
    const cuts = await cuttingOff(
      () => align(database, fragile),
      async () => {
        const early = await connect(database).catch(() => undefined);
        if (early !== undefined) expect(await refusal(early, 'CREATE TABLE notes (id INT)')).toBeUndefined();
        await align(database);
        const connection = await connect(database);
        expect(await refusal(connection, 'CREATE TABLE more (id INT)')).toBeUndefined();
        database = wanted();
      },
    );
    expect(cuts).toBeGreaterThan(5);
  });

  test('the next attempt completes a removal', async () => {
    let database = await make();
    const cuts = await cuttingOff(
      () => align({ ...database, state: 'gone' }, fragile),
      async () => {
        await align({ ...database, state: 'gone' });
        expect(await server.find({ database: database.name, user: database.name })).toEqual({
          databases: [],
          users: [],
          locked: [],
        });
        database = await make();
      },
    );
    expect(cuts).toBeGreaterThan(5);
  });
});

test('the server holds the databases of many tenants', async () => {
  const count = sizeOf('TENANT_DATABASES', 30);
  const databases = await Promise.all(Array.from({ length: count }, () => make()));
  const found = await server.find({ database: prefix, user: prefix });
  for (const { name, accounts } of databases) {
    expect(found.databases).toContain(name);
    expect(found.users).toContain(accounts[0]?.user);
  }
}, 300_000);
