import { checkHosts } from '../../../bin/computers/check.ts';
import { findComputer } from '../../../models/computers/computer.ts';
import { findHost, reportHost } from '../../../models/computers/hosts.ts';
import { forgetSilentHosts, removeHost } from '../../../models/computers/removedHosts.ts';
import { nextStep } from '../../../models/computers/steps.ts';
import { askToDelete, askToRecover, askToWake } from '../../../models/computers/wishes.ts';
import { buildComputerRow, removeComputerRows, reportTestHost } from '../../builders/computerRows.ts';
import { runAtrium } from '../../support/atrium.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Hosts that never come back: the state of their computers, the operations that still work, and the removal of rows.

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());
beforeEach(async () => {
  await removeComputerRows(environment);
});

async function buildHost(silentDays = 0): Promise<string> {
  const id = await reportTestHost(environment, { maxRunning: 100 });
  await environment.database.pool.query('UPDATE computer_hosts SET seen_at = seen_at - INTERVAL ? HOUR WHERE id = ?', [
    silentDays * 24,
    id,
  ]);
  return id;
}

async function buildOn(hostId: string, status: string, wish: string | null = null) {
  return buildComputerRow(environment, { status, wish, hostId, generation: 1 });
}

test('Computers of a removed host report HOST_REMOVED, and can be recovered on another host or deleted', async () => {
  const [gone, other] = [await buildHost(2), await buildHost()];
  const each = { running: await buildOn(gone, 'running'), stopped: await buildOn(gone, 'stopped') };
  const [half, away] = [await buildOn(gone, 'created', 'fork'), await buildOn(gone, 'stopped', 'delete')];
  const elsewhere = await buildOn(other, 'running');
  expect(await removeHost(environment, gone)).toEqual({ computers: 4, lost: 4 });
  for (const { get } of Object.values(each)) {
    expect(await get()).toMatchObject({ status: 'error', errorCode: 'HOST_REMOVED', wish: null });
  }
  expect(await elsewhere.get()).toMatchObject({ status: 'running', errorCode: null });
  for (const { id } of [half, away]) expect(await findComputer(environment.database, id)).toBeUndefined();
  const removed = { kind: 'conflict', code: 'HOST_REMOVED' };
  const { request } = each.running;
  await expect(askToWake(environment, request)).rejects.toMatchObject(removed);
  await expect(askToRecover(environment, { ...request, discardHome: false })).rejects.toMatchObject(removed);
  await askToRecover(environment, { ...request, discardHome: true });
  expect(await nextStep(environment, each.running.id)).toMatchObject({ do: 'start', hostId: other, generation: 2 });
  await askToDelete(environment, each.stopped.request);
  expect(await nextStep(environment, each.stopped.id)).toEqual({ do: 'rest' });
  expect(await findComputer(environment.database, each.stopped.id)).toBeUndefined();
});

test('A removed host that comes back gets none of the computers whose old homes it still has', async () => {
  const [gone, other] = [await buildHost(2), await buildHost()];
  const computer = await buildOn(other, 'stopped');
  const { pool } = environment.database;
  await pool.query('INSERT INTO computer_remains (computer_id, host_id, since) VALUES (?)', [
    [computer.id, gone, new Date()],
  ]);
  await pool.query('UPDATE computers SET host_id = NULL WHERE id = ?', [computer.id]);
  await removeHost(environment, gone);
  const report = { id: gone, address: null, drivers: ['bubblewrap'] as const, cpuMilli: 2_000, memoryMiB: 99_999 };
  await reportHost(environment.database, { ...report, maxRunning: 100 });
  await askToWake(environment, computer.request);
  expect(await nextStep(environment, computer.id)).toMatchObject({ do: 'start', hostId: other });
});

test('A start on a host that was just removed fails with HOST_REMOVED and does not wait', async () => {
  const gone = await buildHost(2);
  const computer = await buildOn(gone, 'starting', 'wake');
  await environment.database.pool.query('DELETE FROM computer_hosts WHERE id = ?', [gone]);
  expect(await nextStep(environment, computer.id)).toEqual({ do: 'rest' });
  expect(await computer.get()).toMatchObject({ status: 'error', errorCode: 'HOST_REMOVED' });
});

test('The operator lists hosts and can remove a silent one, but none that answers', async () => {
  const [gone, other] = [await buildHost(2), await buildHost()];
  await buildOn(gone, 'stopped');
  for (const status of ['running', 'paused', 'stopped']) await buildOn(other, status);
  expect(await checkHosts(environment.config)).toMatchObject({
    state: 'wrong',
    detail: expect.stringMatching(new RegExp(`${gone} is silent since .* with the homes of 1 computer: start it`)),
  });
  const run = (...args: string[]) => runAtrium(['host', ...args], environment.environment);
  const { stdout } = await run('list', '--json');
  const uses = {
    [gone]: { id: gone, computers: 1, running: 0, isLost: true },
    [other]: { id: other, computers: 3, running: 2, isLost: false },
  };
  expect(JSON.parse(stdout)).toEqual([gone, other].toSorted().map((id) => expect.objectContaining(uses[id] ?? {})));
  expect((await run('list')).stdout).toMatch(
    new RegExp(`${other} +there, .*Z, 3 computers, 2 of 100 running, 4096 of 8192 MiB promised\n`),
  );
  expect(await run('remove', '--help')).toMatchObject({
    stdout: expect.stringContaining('Usage: npm run -s atrium -- host remove [options] <id>'),
  });
  expect(await run('remove', other)).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^This host still answers\./),
  });
  expect(await run('remove', 'hst_absent')).toMatchObject({ code: 1 });
  expect(await run('remove', gone, '--json')).toMatchObject({
    code: 0,
    stdout: `{"id":"${gone}","computers":1,"lost":1}\n`,
  });
  expect(await findHost(environment.database, gone)).toBeUndefined();
  expect(await checkHosts(environment.config)).toMatchObject({ state: 'ok' });
});

test('Silent hosts are forgotten after a week, unless they have computers or remains of them', async () => {
  const { database } = environment;
  const [silent, holding, recent, clearing] = [
    await buildHost(8),
    await buildHost(8),
    await buildHost(6),
    await buildHost(8),
  ];
  await buildOn(holding, 'stopped');
  const remains = (days: number, id: string, host: string) =>
    database.pool.query(
      'INSERT INTO computer_remains (computer_id, host_id, since) VALUES (?, ?, NOW() - INTERVAL ? DAY)',
      [id, host, days],
    );
  await remains(8, 'cmp_new', clearing);
  await remains(91, 'cmp_old', silent);
  expect(await forgetSilentHosts(database, new Date())).toBe(1);
  const left = await Promise.all([silent, holding, recent, clearing].map((id) => findHost(database, id)));
  expect(left.map((host) => host !== undefined)).toEqual([false, true, true, true]);
  const [rows] = await database.pool.query('SELECT computer_id AS id FROM computer_remains');
  expect(rows).toEqual([{ id: 'cmp_new' }]);
});
