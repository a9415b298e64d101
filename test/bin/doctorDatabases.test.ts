import { checkDatabases, faultOf } from '../../bin/support/checkDatabases.ts';
import { loadConfig } from '../../config/index.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { tenantServer } from '../support/runServer.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const check = (more: Record<string, string | undefined>) =>
  checkDatabases(loadConfig({ ...environment.environment, ...more }));

test('without a server there are no databases, which is said with the name of the setting', async () => {
  expect(await check({})).toEqual({ state: 'off', detail: expect.stringContaining('ATRIUM_TENANT_DATABASE_URL') });
});

test('a server of its own is right', async () => {
  expect(await check(await tenantServer())).toEqual({
    state: 'ok',
    detail: expect.stringMatching(/^(MySQL )?\d+\.\d+.* at 127\.0\.0\.1:\d+, 0 databases$/),
  });
}, 120_000);

test("the product's own server is none", async () => {
  const own = await check({ ATRIUM_TENANT_DATABASE_URL: environment.environment.ATRIUM_DATABASE_URL });
  expect(own).toEqual({ state: 'wrong', detail: expect.stringContaining("the product's own server") });
});

test('one that does not answer is told', async () => {
  await expect(check({ ATRIUM_TENANT_DATABASE_URL: 'mysql://somebody:secret@127.0.0.1:9/' })).rejects.toThrow(
    'The server for databases of spaces failed: ECONNREFUSED',
  );
});

test('a server on which rights are anybody’s is told of', () => {
  const right = {
    ...{ version: '10.11.6-MariaDB', localInfile: false, eventScheduler: false, functions: true, durations: true },
    ...{ resolvesNames: false, memoryTables: false, isOpenToAll: false, boundsTemporary: true },
  };
  expect(faultOf(right)).toBeUndefined();
  expect(faultOf({ ...right, boundsTemporary: false })).toContain('tmp_disk_table_size');
  expect(faultOf({ ...right, isOpenToAll: true })).toContain("DELETE FROM mysql.db WHERE User = ''");
});
