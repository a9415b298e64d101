import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { getMariaDb, type MariaDb, startMariaDb } from '../../stack/mariadb.ts';
import { temporaryFolder } from '../support/folders.ts';
import { bytesOfFile, canBeOtherUser } from '../support/otherUser.ts';
import { createStackContext } from '../support/stackContext.ts';

const context = createStackContext();

async function query({ ownerUrl }: MariaDb, statement: string): Promise<RowDataPacket[]> {
  const connection = await mysql.createConnection(ownerUrl);
  try {
    return (await connection.query<RowDataPacket[]>(statement))[0];
  } finally {
    await connection.end();
  }
}

test('a database keeps committed rows when its server is killed', async () => {
  const programs = await getMariaDb(context);
  const first = await startMariaDb(context, programs);
  await query(first, 'CREATE TABLE notes (text VARCHAR(20)) ENGINE=InnoDB');
  await query(first, `INSERT INTO notes VALUES ('kept')`);
  process.kill(first.service.pid, 'SIGKILL');
  await first.service.exited;

  const second = await startMariaDb(context, programs);
  try {
    expect(await query(second, 'SELECT text FROM notes')).toEqual([{ text: 'kept' }]);
    expect(await query(second, 'SELECT @@innodb_flush_log_at_trx_commit AS durable')).toEqual([{ durable: 1 }]);
  } finally {
    await second.service.stop();
  }
});

test('each account of the server has only the rights that it needs, over TCP and over the socket', async () => {
  const database = await startMariaDb(context, await getMariaDb(context));
  const socketPath = join(context.servicesDir, 'database', 'data', 'mariadb.sock');
  const password = readFileSync(join(context.dataDir, 'database-root-password'), 'utf8');
  const root = await mysql.createConnection({ socketPath, user: 'root', password });
  try {
    // An earlier version granted this.
    await root.query("GRANT ALL PRIVILEGES ON *.* TO 'atrium'@'127.0.0.1' WITH GRANT OPTION");
    await database.service.stop();
  } finally {
    root.destroy();
  }

  const again = await startMariaDb({ ...context, databaseSocket: true }, await getMariaDb(context));
  const inside = await mysql.createConnection({ socketPath, user: 'root', password });
  const overSocket = await mysql.createConnection(again.url);
  const overTcp = await mysql.createConnection(again.url.replace(/\?.*/, ''));
  try {
    const [users] = await inside.query<RowDataPacket[]>('SELECT User AS user, Host AS host FROM mysql.user');
    expect(users.map(({ user, host }) => `${user}@${host}`).toSorted()).toEqual([
      'atrium@127.0.0.1',
      'atrium_app@127.0.0.1',
      'atrium_app@localhost',
      'mariadb.sys@localhost',
      'root@localhost',
    ]);
    await query(again, 'CREATE TABLE IF NOT EXISTS ledger (amount INT) ENGINE=InnoDB');
    for (const [running, host] of [
      [overSocket, 'localhost'],
      [overTcp, '127.0.0.1'],
    ] as const) {
      const [accounts] = await running.query<RowDataPacket[]>('SELECT USER() AS account');
      expect(accounts).toEqual([{ account: `atrium_app@${host}` }]);
      await running.query('DELETE FROM ledger');
      await running.query('INSERT INTO ledger VALUES (1)');
      expect((await running.query<RowDataPacket[]>('SELECT amount FROM ledger'))[0]).toEqual([{ amount: 1 }]);
      for (const statement of [
        'DROP TABLE ledger',
        'ALTER TABLE ledger ADD COLUMN note TEXT',
        'CREATE TABLE other (a INT)',
        'CREATE DATABASE other',
        "CREATE USER 'more'@'127.0.0.1'",
        'SELECT * FROM mysql.global_priv',
        "SELECT LOAD_FILE('/etc/passwd') INTO OUTFILE '/tmp/never-written'",
        'SET GLOBAL general_log = 1',
      ]) {
        await expect(running.query(statement)).rejects.toThrow(/denied/);
      }
    }
    for (const statement of [
      'CREATE DATABASE other',
      'SELECT * FROM mysql.global_priv',
      'SET GLOBAL general_log = 1',
    ]) {
      await expect(query(again, statement)).rejects.toThrow(/denied/);
    }
  } finally {
    overSocket.destroy();
    overTcp.destroy();
    inside.destroy();
    await again.service.stop();
  }
});

test('another user of the machine cannot read the passwords or the data files', async () => {
  const files = [
    join(context.dataDir, 'database-password'),
    join(context.dataDir, 'database-app-password'),
    join(context.dataDir, 'database-root-password'),
    join(context.servicesDir, 'database', 'data', 'ibdata1'),
    join(context.servicesDir, 'database', 'setup.sql'),
  ];
  for (const file of files) {
    expect(await bytesOfFile(file, { asOther: false })).toBe(1);
    if (canBeOtherUser) expect(await bytesOfFile(file, { asOther: true })).toBe(0);
  }
});

test('the address has no socket path that is too long for the system', async () => {
  const deep = createStackContext({ dataDir: join(temporaryFolder(), 'd'.repeat(100)), databaseSocket: true });
  const database = await startMariaDb(deep, await getMariaDb(deep));
  try {
    expect(database.url).not.toContain('socketPath');
  } finally {
    await database.service.stop();
  }
});
