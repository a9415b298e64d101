import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeBackup } from '../../backup/make/makeBackup.ts';
import type { Vault } from '../../backup/vault/vault.ts';
import { checkDatabase } from '../../bin/support/checkParts.ts';
import { startProduct } from '../../bin/support/product.ts';
import { loadConfig } from '../../config/index.ts';
import { migrateInstallation } from '../../models/migrations/migrate.ts';
import { createTestEnvironment, runStatement, type TestEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { waitFor } from '../support/waitFor.ts';

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment({ ATRIUM_LOG_LEVEL: 'warn' });
});

afterAll(() => environment.close());

const owner = (statement: string) => runStatement(environment.environment.ATRIUM_DATABASE_MIGRATION_URL, statement);

test('doctor reports a complete database, and how many processes it can serve', async () => {
  const { state, detail } = await checkDatabase(environment.config);
  expect({ state, detail }).toEqual({
    state: 'ok',
    detail: expect.stringMatching(/schema up to date; .* \d+ processes$/),
  });
  const [rows] = await environment.database.pool.query("SELECT * FROM ledger_transactions WHERE kind = 'probe'");
  expect(rows).toEqual([]);
});

test('doctor reports a server that allows fewer connections than the pools may open', async () => {
  const config = loadConfig({ ...environment.environment, ATRIUM_DATABASE_POOL_SIZE: '500' });
  expect(await checkDatabase(config)).toEqual({
    state: 'wrong',
    detail: expect.stringContaining('one process may open 1010 connections'),
  });
});

test('doctor and a start report missing triggers, and the next migration creates them', async () => {
  const missing = ['ledger_entries_no_update', 'ledger_transactions_no_delete'];
  for (const name of missing) await owner(`DROP TRIGGER ${name}`);

  expect(await checkDatabase(environment.config)).toEqual({
    state: 'wrong',
    detail: expect.stringMatching(
      /not kept from DELETE of ledger_transactions, UPDATE of ledger_entries: .*log_bin_trust/,
    ),
  });
  const logFile = join(temporaryFolder(), 'log');
  const product = await startProduct(environment.config, 'api', logFile);
  try {
    await waitFor(
      'the warning',
      () => existsSync(logFile) && readFileSync(logFile, 'utf8').includes('does not guard the ledger'),
    );
  } finally {
    await product.stop();
  }

  await migrateInstallation(environment.config);
  expect(await checkDatabase(environment.config)).toMatchObject({ state: 'ok' });
});

test('an older Atrium does not start on the database of a newer one, and doctor says why', async () => {
  await owner("INSERT INTO schema_migrations VALUES ('9999-last', NOW())");
  try {
    const refusal = expect.stringMatching(/^The database was written by a newer Atrium \(.*9999-last/);
    expect(await checkDatabase(environment.config).catch(String)).toContain('written by a newer Atrium');
    for (const role of ['api', 'worker', 'both'] as const) {
      const started = startProduct(environment.config, role, join(temporaryFolder(), 'log'));
      await expect(started).rejects.toMatchObject({ message: refusal });
    }
    // It would leave out what only the newer version's rows name.
    const { config } = environment;
    const { signal } = new AbortController();
    const backup = makeBackup({ vault: {} as Vault, config, signal, report() {} });
    await expect(backup).rejects.toMatchObject({ message: refusal });
  } finally {
    await owner("DELETE FROM schema_migrations WHERE name = '9999-last'");
  }
});
