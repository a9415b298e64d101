import type { RowDataPacket } from 'mysql2/promise';
import { openDatabase } from '../../../models/database/database.ts';
import { binaryText } from '../../../models/migrations/0021-binary-text.ts';
import { migrate } from '../../../models/migrations/migrate.ts';
import { createEmptyDatabase, runStatement } from '../../support/environment.ts';

/** A migrated database on a server whose own collation makes no difference between upper and lower case. */
async function setUp() {
  const { ownerUrl: url, drop } = await createEmptyDatabase();
  await runStatement(url, 'ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci');
  const database = openDatabase({ database: { url, poolSize: 4, silenceMs: 15_000 } });
  await migrate(database);
  const select = async (statement: string) => (await database.pool.query<RowDataPacket[]>(statement))[0];
  const textColumnsThat = (condition: string) =>
    select(
      `SELECT CONCAT(table_name, '.', column_name) AS name, collation_name AS collation FROM information_schema.columns
        WHERE table_schema = DATABASE() AND ${condition} ORDER BY 1`,
    );
  const close = async () => {
    await database.close();
    await drop();
  };
  return { database, url, select, textColumnsThat, close };
}

test('text is compared byte by byte in every column, whatever the database itself does', async () => {
  const { textColumnsThat, close } = await setUp();
  try {
    expect(await textColumnsThat("collation_name NOT IN ('utf8mb4_bin', 'ascii_bin')")).toEqual([]);
    const ids = await textColumnsThat("collation_name IS NOT NULL AND column_name REGEXP '(^|_)id$'");
    expect(ids.length).toBeGreaterThan(100);
  } finally {
    await close();
  }
});

test('a database of an earlier version keeps its rows and its keys, and takes the step again after it was broken off', async () => {
  const { database, url, select, textColumnsThat, close } = await setUp();
  try {
    const keys = () =>
      select(
        `SELECT table_name, index_name, column_name FROM information_schema.statistics
          WHERE table_schema = DATABASE() ORDER BY table_name, index_name, seq_in_index`,
      );
    const before = await keys();
    for (const table of ['threads', 'turns', 'messages']) {
      await runStatement(url, `ALTER TABLE ${table} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci`);
    }
    const columns = 'id, space_id, user_id, title, created_at, updated_at';
    const values = "'SPACE', 'USER', 'Grüße', '2026-01-01', '2026-01-01'";
    await runStatement(url, `INSERT INTO threads (${columns}) VALUES ('THREAD', ${values})`);
    await runStatement(url, 'CREATE TABLE somebody_elses (id VARCHAR(40) COLLATE utf8mb4_unicode_ci)');
    expect(await select("SELECT title FROM threads WHERE id = 'thread'")).toHaveLength(1);

    for (let run = 0; run < 2; run++) await binaryText.up(database.sequelize.getQueryInterface());

    expect(await select("SELECT title FROM threads WHERE id = 'thread'")).toEqual([]);
    expect(await select("SELECT title FROM threads WHERE id = 'THREAD'")).toEqual([{ title: 'Grüße' }]);
    expect(await keys()).toEqual([...before]);
    const other = await textColumnsThat("collation_name <> 'utf8mb4_bin'");
    expect(other.map(({ name }) => name as string)).toEqual(['somebody_elses.id']);
  } finally {
    await close();
  }
});
