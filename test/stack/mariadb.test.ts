import mysql, { type RowDataPacket } from 'mysql2/promise';
import { getMariaDb, type MariaDb, startMariaDb } from '../../stack/mariadb.ts';
import { createStackContext } from '../support/stackContext.ts';

const context = createStackContext();

async function query(database: MariaDb, statement: string): Promise<RowDataPacket[]> {
  const connection = await mysql.createConnection(database.url);
  try {
    return (await connection.query<RowDataPacket[]>(statement))[0];
  } finally {
    await connection.end();
  }
}

test('a database whose server was killed has what was committed', async () => {
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
