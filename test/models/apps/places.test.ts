import { createAppActivities } from '../../../activities/apps/index.ts';
import { newId } from '../../../base/ids.ts';
import { nextInLine } from '../../../models/apps/line.ts';
import { getRun } from '../../../models/apps/run.ts';
import { nextRunStep } from '../../../models/apps/steps.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { openAsOwner } from '../../support/plans.ts';
import { waitFor } from '../../support/waitFor.ts';

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

/** A space that may run `runsPerSpace` runs at once. Each run belongs to its own app. */
function spaceWith(runsPerSpace: number) {
  const { database } = environment;
  const spaceId = newId('space');
  const limits = { runsPerSpace };
  return {
    async run(status: 'running' | 'queued') {
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
    },
    async runs(count: number, status: 'running' | 'queued') {
      const ids: string[] = [];
      while (ids.length < count) ids.push(await this.run(status));
      return ids;
    },
    end: (ids: string[]) =>
      database.pool.query("UPDATE app_runs SET status = 'succeeded', active = NULL WHERE id IN (?)", [ids]),
    look: (id: string) => nextRunStep(database, id, limits),
    next: async (id: string) => (await nextInLine(database, await getRun(database, id), limits)).map((run) => run.id),
  };
}

test('A run that finds its space full gets the slot that is freed at that moment', async () => {
  const { database } = environment;
  const space = spaceWith(1);
  const [first, second] = [await space.run('running'), await space.run('queued')];
  await using owner = new AsyncDisposableStack();
  const connection = await openAsOwner(environment.environment.ATRIUM_DATABASE_MIGRATION_URL);
  owner.defer(() => connection.end());
  // The trigger stops the look before it records that the run waits.
  const [arrived, hold] = [newId('run'), newId('run')];
  await connection.query(`CREATE TRIGGER stand_still BEFORE UPDATE ON app_runs FOR EACH ROW IF NEW.waits_for_space = 1 THEN
    DO GET_LOCK('${arrived}', 0) + GET_LOCK('${hold}', 60) + RELEASE_LOCK('${hold}') + RELEASE_LOCK('${arrived}'); END IF`);
  owner.defer(async () => void (await connection.query('DROP TRIGGER stand_still')));
  await connection.query('DO GET_LOCK(?, 60)', [hold]);
  const step = space.look(second);
  await waitFor('the look to stop', async () => {
    const [rows] = await connection.query('SELECT IS_USED_LOCK(?) AS used', [arrived]);
    return (rows as { used: number | null }[])[0]?.used;
  });
  await connection.query("UPDATE app_runs SET status = 'succeeded', active = NULL WHERE id = ?", [first]);
  // The ended run finds no waiting run to tell.
  expect(await space.next(first)).toEqual([]);
  await connection.query('DO RELEASE_LOCK(?)', [hold]);
  expect(await step).toMatchObject({ do: 'attempt', attempt: 1 });
  expect(await getRun(database, second)).toMatchObject({ status: 'running', waitsForSpace: null });
});

test('A free slot goes to the run that has waited longest, whichever looks first', async () => {
  const space = spaceWith(2);
  const [first, second] = [await space.run('running'), await space.run('running')];
  const [oldest, younger] = [await space.run('queued'), await space.run('queued')];
  for (const id of [oldest, younger]) expect(await space.look(id)).toMatchObject({ do: 'watch' });
  await space.end([first]);
  expect(await space.next(first)).toEqual([oldest]);
  for (const id of [younger, await space.run('queued')]) expect(await space.look(id)).toMatchObject({ do: 'watch' });
  expect(await space.look(oldest)).toMatchObject({ do: 'attempt' });
  // With a free slot for each run, the order of their looks does not matter.
  await space.end([second]);
  expect(await space.look(younger)).toMatchObject({ do: 'attempt' });
});

test('Slots that are freed together are all taken', async () => {
  const space = spaceWith(12);
  const running = await space.runs(12, 'running');
  const waiting = await space.runs(13, 'queued');
  for (const id of waiting) expect(await space.look(id)).toMatchObject({ do: 'watch' });
  await space.end(running);
  const told = await space.next(running[0] ?? '');
  for (const id of running) expect(await space.next(id)).toEqual(told);
  for (const id of told) {
    expect(await space.look(id)).toMatchObject({ do: 'attempt' });
    for (const next of await space.next(id)) if (!told.includes(next)) told.push(next);
  }
  expect(told).toEqual(waiting.slice(0, 12));
});

test('A run that must wait for its own component leaves the free slot to the next run', async () => {
  const { database } = environment;
  const space = spaceWith(1);
  const running = await space.run('running');
  const [oldest, younger] = [await space.run('queued'), await space.run('queued')];
  for (const id of [oldest, younger]) expect(await space.look(id)).toMatchObject({ do: 'watch' });
  await space.end([running]);
  // Another run of the same component is running, and the component allows only one.
  const { appId } = await getRun(database, oldest);
  const beside = await space.run('queued');
  await database.pool.query("UPDATE app_runs SET app_id = ?, status = 'running', space_id = ? WHERE id = ?", [
    appId,
    newId('space'),
    beside,
  ]);
  expect(await space.look(younger)).toMatchObject({ do: 'watch' });
  expect(await space.look(oldest)).toMatchObject({ do: 'watch' });
  expect(await space.next(oldest)).toEqual([younger]);
  expect(await space.look(younger)).toMatchObject({ do: 'attempt' });
});

test('A run that could not be told about its slot is told again', async () => {
  const { config, database } = environment;
  const space = spaceWith(config.apps.runsPerSpace);
  const [ended, next] = [await space.run('running'), await space.run('queued')];
  await database.pool.query('UPDATE app_runs SET waits_for_space = 1 WHERE id = ?', [next]);
  await space.end([ended]);
  const told: string[] = [];
  let answer = 'late';
  const workflows = { startRun: async ({ id }: { id: string }) => told.push(id) && answer };
  const { lookAtAppRun } = createAppActivities({ config, database, logger: { info() {} }, workflows } as never);
  await expect(lookAtAppRun({ runId: ended })).rejects.toThrow('could not be told');
  answer = 'reached';
  expect(await lookAtAppRun({ runId: ended })).toMatchObject({ do: 'rest' });
  expect(told).toEqual([next, next]);
});
