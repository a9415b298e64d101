import { RowTooLarge } from '../../../integrations/databases/errors.ts';
import type { WantedDatabase } from '../../../integrations/databases/types.ts';
import { type DumpedDatabases, dumpedDatabases } from '../../builders/dumpedDatabases.ts';
import { waitFor } from '../../support/waitFor.ts';

// Errors of statements without an answer or with a too large one.

let databases: DumpedDatabases;
let database: WantedDatabase;
beforeAll(async () => {
  databases = await dumpedDatabases();
  database = await databases.make();
});
afterAll(() => databases.close());

function ask(sql: string, { onlyReads = true, timeoutMs = 60_000 } = {}) {
  const { signal } = new AbortController();
  const bounds = { maxRows: 10, maxCharacters: 100 };
  return databases.server.ask(databases.accountOf(database), sql, { ...bounds, onlyReads, timeoutMs, signal });
}

test('a reading statement that times out gets SQL_TIMED_OUT, and another gets SQL_OUTCOME_UNKNOWN', async () => {
  const asked = { timeoutMs: 1_000 };
  await expect(ask('SELECT SLEEP(600)', asked)).rejects.toMatchObject({ code: 'SQL_TIMED_OUT' });
  const changing = { ...asked, onlyReads: false };
  await expect(ask('DO SLEEP(600)', changing)).rejects.toMatchObject({
    code: 'SQL_OUTCOME_UNKNOWN',
    message: expect.stringContaining('may have been done'),
  });
});

test('a reading statement whose connection is killed gets SQL_INTERRUPTED, and another gets SQL_OUTCOME_UNKNOWN', async () => {
  const owner = await databases.connect(database);
  for (const [onlyReads, code] of [
    [true, 'SQL_INTERRUPTED'],
    [false, 'SQL_OUTCOME_UNKNOWN'],
  ] as const) {
    const asked = expect(ask(`SELECT SLEEP(60) AS ${code}`, { onlyReads })).rejects.toMatchObject({ code });
    const id = await waitFor('the statement to run', async () => {
      const [rows] = (await owner.query('SHOW PROCESSLIST')) as unknown as [{ Id: number; Info: string | null }[]];
      return rows.find(({ Info }) => Info?.startsWith('SELECT') && Info.includes(code))?.Id;
    });
    await owner.query(`KILL ${id}`);
    await asked;
  }
});

test('a row that is too large for memory gets ROW_TOO_LARGE', async () => {
  const owner = await databases.connect(database);
  await owner.query('CREATE TABLE wide (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB, c LONGBLOB)');
  await owner.query("INSERT INTO wide VALUES (1, '', '', ''), (2, '', '', '')");
  for (const column of ['a', 'b', 'c'])
    await owner.query(`UPDATE wide SET ${column} = REPEAT('x', 12000000) WHERE id = 1`);
  await expect(ask('SELECT * FROM wide')).rejects.toMatchObject({ code: 'ROW_TOO_LARGE' });
  await expect(ask('SELECT * FROM wide', { onlyReads: false })).rejects.toMatchObject({ code: 'SQL_OUTCOME_UNKNOWN' });
  expect(await ask('SELECT id, LENGTH(a) AS n FROM wide ORDER BY id')).toMatchObject({
    rows: [
      ['1', '12000000'],
      ['2', '0'],
    ],
  });
  // A single large value is cut, and the limit applies to each row, not to all rows together.
  expect(await ask('SELECT a FROM wide ORDER BY id')).toMatchObject({ isCut: true });
  const error: unknown = await databases.dump(database).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RowTooLarge);
  expect(error).toMatchObject({ table: 'wide' });
});
