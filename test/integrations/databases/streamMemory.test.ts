import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { withAccountConnection } from '../../../integrations/databases/accountConnection.ts';
import { type DumpedDatabases, dumpedDatabases } from '../../builders/dumpedDatabases.ts';

// Reading a large database takes no more memory than reading a small one.

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

let databases: DumpedDatabases;
beforeAll(async () => {
  databases = await dumpedDatabases();
});
afterAll(() => databases.close());

test('the memory of a reader does not grow with its rows', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query('CREATE TABLE digits (d INT)');
  await source.query('INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)');
  const { host, port } = databases.server;
  const account = database.accounts[0];
  const details = { host, port, user: account?.user ?? '', password: account?.password ?? '', database: database.name };
  // Returns 100,000 rows.
  const sql = 'SELECT a.d FROM digits a, digits b, digits c, digits d, digits e';
  const used: number[] = [];
  await withAccountConnection(details, new AbortController().signal, async (connection) => {
    let count = 0;
    for await (const _row of connection.stream(sql, 1_048_576)) {
      count += 1;
      if (count !== 1_000 && count !== 100_000) continue;
      collect();
      used.push(process.memoryUsage().heapUsed);
    }
    expect(count).toBe(100_000);
  });
  const [early = 0, late = 0] = used;
  expect((late - early) / 1_048_576).toBeLessThan(8);
});
