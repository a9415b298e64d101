import { getRun } from '../../../models/apps/run.ts';
import { nextInLine, nextRunStep } from '../../../models/apps/steps.ts';
import { newId } from '../../../models/ids.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { openAsOwner } from '../../support/plans.ts';
import { waitFor } from '../../support/waitFor.ts';

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

test('a run that finds its space full is not forgotten when a place comes free at that moment', async () => {
  const { database } = environment;
  const spaceId = newId('space');
  const run = async (status: 'running' | 'queued') => {
    const [id, appId, itemId] = [newId('run'), newId('app'), newId('driveItem')];
    const common = { item_id: itemId, space_id: spaceId, created_at: new Date() };
    await insertRows(database, {
      apps: { ...common, id: appId, live: 1, manifest: '{}', manifest_tag: 'one', created_by: 'usr_1' },
      app_runs: {
        ...common,
        id,
        app_id: appId,
        component: 'run',
        spec: JSON.stringify({ kind: 'process', concurrency: 1, timeoutSeconds: 60 }),
        trigger_kind: 'request',
        user_id: 'usr_1',
        status,
        active: 1,
        attempt: status === 'running' ? 1 : 0,
        is_started: 0,
      },
    });
    return id;
  };
  const [first, second] = [await run('running'), await run('queued')];
  await using owner = new AsyncDisposableStack();
  const connection = await openAsOwner(environment.environment.ATRIUM_DATABASE_MIGRATION_URL);
  owner.defer(() => connection.end());
  // It stands still between its look and its note that it waits.
  const [arrived, hold] = [newId('run'), newId('run')];
  await connection.query(`CREATE TRIGGER stand_still BEFORE UPDATE ON app_runs FOR EACH ROW IF NEW.waits_for_space = 1 THEN
    DO GET_LOCK('${arrived}', 0) + GET_LOCK('${hold}', 60) + RELEASE_LOCK('${hold}') + RELEASE_LOCK('${arrived}'); END IF`);
  await connection.query('DO GET_LOCK(?, 60)', [hold]);
  const step = nextRunStep(database, second, { runsPerSpace: 1 });
  await waitFor('it to stand still', async () => {
    const [rows] = await connection.query('SELECT IS_USED_LOCK(?) AS used', [arrived]);
    return (rows as { used: number | null }[])[0]?.used;
  });
  await connection.query("UPDATE app_runs SET status = 'succeeded', active = NULL WHERE id = ?", [first]);
  // So nobody tells it.
  expect(await nextInLine(database, await getRun(database, first))).toEqual([]);
  await connection.query('DO RELEASE_LOCK(?)', [hold]);
  expect(await step).toMatchObject({ do: 'attempt', attempt: 1 });
  expect(await getRun(database, second)).toMatchObject({ status: 'running', waitsForSpace: null });
});
