import type { RowDataPacket } from 'mysql2/promise';
import { openDatabase } from '../../../models/database/database.ts';
import { migrate } from '../../../models/migrations/migrate.ts';
import { createEmptyDatabase, runStatement } from '../../support/environment.ts';

test('Every table and column compares text byte by byte, even if the database has another default', async () => {
  const { ownerUrl: url, drop } = await createEmptyDatabase();
  await runStatement(url, 'ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci');
  const database = openDatabase({ database: { url, poolSize: 4, silenceMs: 15_000 } });
  const select = async (statement: string) => (await database.pool.query<RowDataPacket[]>(statement))[0];
  try {
    await migrate(database);
    const ofThisDatabase = 'table_schema = DATABASE() AND';
    const columns = `SELECT table_name, column_name FROM information_schema.columns WHERE ${ofThisDatabase}`;
    expect(await select(`${columns} collation_name <> 'utf8mb4_bin'`)).toEqual([]);
    const tables = `SELECT table_name FROM information_schema.tables WHERE ${ofThisDatabase}`;
    expect(await select(`${tables} table_collation <> 'utf8mb4_bin'`)).toEqual([]);
    const ids = await select(`${columns} collation_name IS NOT NULL AND column_name REGEXP '(^|_)id$'`);
    expect(ids.length).toBeGreaterThan(100);
  } finally {
    await database.close();
    await drop();
  }
});
