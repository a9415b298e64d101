import { withTenantConnection } from '../../../integrations/databases/connection.ts';
import { endLargeTemporary } from '../../../integrations/databases/temporaryFiles.ts';
import { dumpedDatabases } from '../../builders/dumpedDatabases.ts';
import { tenantServer } from '../../support/runServer.ts';
import { waitFor } from '../../support/waitFor.ts';

let databases: Awaited<ReturnType<typeof dumpedDatabases>>;
beforeAll(async () => {
  databases = await dumpedDatabases();
});
afterAll(() => databases.close());

test('a statement with too large temporary files is ended with its connection, and others are not', async () => {
  if (!databases.isMariaDb) return;
  const [database, other] = [await databases.make(), await databases.make()];
  const [large, quiet] = [await databases.connect(database), await databases.connect(other)];
  await large.query('CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(1000))');
  await large.query("INSERT INTO notes (words) VALUES (REPEAT('x', 1000))");
  for (let times = 0; times < 10; times++) await large.query('INSERT INTO notes (words) SELECT words FROM notes');
  const many = (at: number) =>
    `(SELECT a.id AS k, CONCAT(a.words, b.id) AS words FROM notes a JOIN notes b LIMIT 100000) d${at}`;
  const asked = large
    .query(`SELECT COUNT(*), SLEEP(600) FROM ${many(1)} JOIN ${many(2)} WHERE d1.k = d2.k AND d1.words < d2.words`)
    .then(
      () => 'answered',
      () => 'ended',
    );
  const { ATRIUM_TENANT_DATABASE_URL: url = '', ATRIUM_TENANT_DATABASE_ADMIN_PORT: port } = await tenantServer();
  const bounds = { ofOne: 20_000_000, ofAll: 1_000_000_000 };
  const prefixes = [databases.accountOf(database).user, databases.accountOf(other).user];
  await withTenantConnection({ url, adminPort: Number(port) }, async (admin) => {
    expect(await endLargeTemporary(admin, ['nobody'], { ofOne: 0, ofAll: 0 })).toBe(0);
    await waitFor('the statement to be ended', async () => (await endLargeTemporary(admin, prefixes, bounds)) > 0);
  });
  expect(await asked).toBe('ended');
  expect((await quiet.query('SELECT 1 AS one'))[0]).toEqual([{ one: 1 }]);
});
