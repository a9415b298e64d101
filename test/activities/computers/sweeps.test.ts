import { MockActivityEnvironment } from '@temporalio/testing';
import type { ComputerDeps } from '../../../activities/computers/deps.ts';
import { createComputerSweeps } from '../../../activities/computers/sweeps.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

test('A snapshot whose workflow is gone fails, and one that is still being made waits', async () => {
  const { config, database } = environment;
  const createdAt = new Date(Date.now() - 3_600_000);
  for (const [id, status] of [
    ['snp_lost', 'failed'],
    ['snp_making', 'running'],
  ]) {
    const named = { id, spaceId: 'spc_1', computerId: 'cmp_1', name: 'x', createdAt };
    const operation = { id: `op_${id}`, kind: 'snapshotComputer', userId: 'usr_1', subjectId: id, status, createdAt };
    await insertRows(database, { computer_snapshots: named, operations: operation });
  }
  const deps = {
    config,
    database,
    logger: createLogger({ level: 'silent' }),
    workflows: {},
  } as unknown as ComputerDeps;
  const report = await new MockActivityEnvironment().run(createComputerSweeps(deps).sweepSnapshots);
  expect(report).toMatchObject({ looked: 2, ended: 1, failed: 0 });
  const [rows] = await database.pool.query('SELECT id, failed_code AS code FROM computer_snapshots ORDER BY id');
  expect(rows).toEqual([
    { id: 'snp_lost', code: 'WORKFLOW_LOST' },
    { id: 'snp_making', code: null },
  ]);
});
