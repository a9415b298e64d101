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

test('without a server, databases of spaces are off, and doctor names the setting', async () => {
  expect(await check({})).toEqual({ state: 'off', detail: expect.stringContaining('ATRIUM_TENANT_DATABASE_URL') });
});

test('a separate server is right', async () => {
  expect(await check(await tenantServer())).toEqual({
    state: 'ok',
    detail: expect.stringMatching(/^(MySQL )?\d+\.\d+.* at 127\.0\.0\.1:\d+, 0 databases$/),
  });
});

test("Atrium's own database server is wrong", async () => {
  const own = await check({ ATRIUM_TENANT_DATABASE_URL: environment.environment.ATRIUM_DATABASE_URL });
  expect(own).toEqual({ state: 'wrong', detail: expect.stringContaining("the product's own server") });
});

test('a server that does not answer is reported', async () => {
  await expect(check({ ATRIUM_TENANT_DATABASE_URL: 'mysql://somebody:secret@127.0.0.1:9/' })).rejects.toThrow(
    'The server for databases of spaces failed: ECONNREFUSED',
  );
});

test('a server that gives rights to everyone, or does not limit temporary tables, is reported', () => {
  const right = {
    ...{ version: '10.11.6-MariaDB', localInfile: false, eventScheduler: false, functions: true, durations: true },
    ...{ resolvesNames: false, memoryTables: false, isOpenToAll: false, boundsTemporary: true },
  };
  expect(faultOf(right)).toBeUndefined();
  expect(faultOf({ ...right, boundsTemporary: false })).toContain('tmp_disk_table_size');
  expect(faultOf({ ...right, isOpenToAll: true })).toContain("DELETE FROM mysql.db WHERE User = ''");
});
