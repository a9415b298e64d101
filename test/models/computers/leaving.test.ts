import { newId } from '../../../base/ids.ts';
import { createComputers } from '../../../models/computers/computers.ts';
import { cordonHost, drainHost } from '../../../models/computers/draining.ts';
import { endStep } from '../../../models/computers/ends.ts';
import { askToFork } from '../../../models/computers/forks.ts';
import { removeHost } from '../../../models/computers/removedHosts.ts';
import { nextStep } from '../../../models/computers/steps.ts';
import { askToRecover, askToStop, askToWake } from '../../../models/computers/wishes.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { buildComputerRow, removeComputerRows, reportTestHost, silenceHost } from '../../builders/computerRows.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Computers that leave their host, because it is lost or because the operator wants it.

let environment: TestEnvironment;
let own: string;
let other: string;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());
beforeEach(async () => {
  await removeComputerRows(environment);
  [own, other] = [await buildHost(), await buildHost()];
  jest.spyOn(process, 'uptime').mockReturnValue(3_600);
});
afterEach(() => jest.restoreAllMocks());

const buildHost = () => reportTestHost(environment);
const silence = (hostId: string) => silenceHost(environment, hostId);

/** A computer on `own`. With `isSaved`, its home is saved. */
async function buildOn(status: string, { wish = null as string | null, isSaved = true } = {}) {
  const { id, spaceId, request, set, get } = await buildComputerRow(environment);
  const save = saveRow({ spaceId, computerId: id });
  await insertRows(environment.database, { home_saves: save });
  await set({ status, wish, hostId: own, generation: 1, homeSaveId: isSaved ? save.id : null });
  const step = () => nextStep(environment, id);
  return { id, request, get, step };
}

async function remains() {
  const [rows] = await environment.database.pool.query(
    'SELECT computer_id AS id, host_id AS host FROM computer_remains',
  );
  return rows;
}

describe('A lost host', () => {
  test('A running computer starts on another host by itself', async () => {
    const { id, get, step } = await buildOn('running');
    await silence(own);
    expect(await step()).toMatchObject({ do: 'start', hostId: other, generation: 2 });
    expect(await get()).toMatchObject({ status: 'starting', wish: 'wake', hostId: other });
    expect(await remains()).toEqual([{ id, host: own }]);
  });

  test('A computer whose home was never saved stays, and so do all if the operator wants that', async () => {
    const unsaved = await buildOn('running', { isSaved: false });
    const saved = await buildOn('running');
    await silence(own);
    expect(await unsaved.step()).toEqual({ do: 'rest' });
    const { config, database } = environment;
    const off = { database, config: { ...config, computers: { ...config.computers, failover: false } } };
    expect(await nextStep(off, saved.id)).toEqual({ do: 'rest' });
    for (const { get } of [unsaved, saved]) {
      expect(await get()).toMatchObject({ status: 'error', errorCode: 'HOST_LOST', hostId: own });
    }
    // A wake is a decision for the save.
    await askToWake(off, saved.request);
    expect(await saved.step()).toMatchObject({ do: 'start', hostId: other });
  });

  test('A computer stays while no other host has room', async () => {
    await environment.database.pool.query('UPDATE computer_hosts SET max_running = 0 WHERE id = ?', [other]);
    const { get, step, request } = await buildOn('running');
    await silence(own);
    expect(await step()).toEqual({ do: 'rest' });
    expect(await get()).toMatchObject({ status: 'error', errorCode: 'HOST_LOST', hostId: own });
    await expect(askToWake(environment, request)).rejects.toMatchObject({ code: 'HOST_LOST' });
  });

  test('A stopped and a paused computer leave when they are woken', async () => {
    for (const status of ['stopped', 'paused', 'error']) {
      const { request, step, get } = await buildOn(status);
      await silence(own);
      await askToWake(environment, request);
      expect(await step()).toMatchObject({ do: 'start', hostId: other, generation: 2 });
      expect(await get()).toMatchObject({ homeSaveId: expect.any(String) });
    }
  });

  test('A stop under way ends as a stop', async () => {
    const { request, step, get } = await buildOn('running');
    const { operation } = await askToStop(environment, request);
    await silence(own);
    expect(await step()).toEqual({ do: 'rest' });
    expect(await get()).toMatchObject({ status: 'stopped', wish: null, hostId: null });
    await operation?.reload();
    expect(operation?.status).toBe('succeeded');
  });

  test('Recover uses the save, and needs discardHome only where there is none', async () => {
    const [saved, unsaved] = [await buildOn('error'), await buildOn('error', { isSaved: false })];
    await silence(own);
    await askToRecover(environment, { ...saved.request, discardHome: false });
    expect(await saved.step()).toMatchObject({ do: 'start', hostId: other });
    const recover = (discardHome: boolean) => askToRecover(environment, { ...unsaved.request, discardHome });
    await expect(recover(false)).rejects.toMatchObject({ code: 'HOST_LOST' });
    await recover(true);
    expect(await unsaved.step()).toMatchObject({ do: 'start', hostId: other });
  });

  test('Computers of a removed host go on elsewhere', async () => {
    const [running, stopped, unsaved] = [
      await buildOn('running'),
      await buildOn('stopped'),
      await buildOn('stopped', { isSaved: false }),
    ];
    await silence(own);
    expect(await removeHost(environment, own)).toEqual({ computers: 3, lost: 1 });
    expect(await running.step()).toMatchObject({ do: 'start', hostId: other });
    expect(await stopped.get()).toMatchObject({ status: 'stopped', hostId: null, errorCode: null });
    expect(await unsaved.get()).toMatchObject({ status: 'error', errorCode: 'HOST_REMOVED' });
    // If the host comes back after all, it must not use what it has of them.
    expect(await remains()).toHaveLength(2);
  });
});

describe('A host that cannot make the home of a computer', () => {
  const fail = (id: string, code: string) =>
    endStep(environment, { computerId: id, generation: 1, step: 'start', code });

  test.each(['NO_ROOM_FOR_HOME', 'SAVE_UNREADABLE'])(
    'is left after %s, and the next start is elsewhere',
    async (code) => {
      const { id, request, get, step } = await buildOn('starting', { wish: 'wake' });
      await fail(id, code);
      const errorCode = code === 'NO_ROOM_FOR_HOME' ? 'DISK_FULL' : code;
      expect(await get()).toMatchObject({ status: 'error', errorCode, hostId: null, wish: null });
      expect(await remains()).toEqual([{ id, host: own }]);
      await askToWake(environment, request);
      expect(await step()).toMatchObject({ do: 'start', hostId: other, generation: 2 });
    },
  );

  test('is tried again while no other host has room, and so is one that has the home', async () => {
    const there = await buildOn('starting', { wish: 'wake' });
    await fail(there.id, 'DISK_FULL');
    await environment.database.pool.query('UPDATE computer_hosts SET max_running = 0 WHERE id = ?', [other]);
    const alone = await buildOn('starting', { wish: 'wake' });
    await fail(alone.id, 'NO_ROOM_FOR_HOME');
    for (const { get, request, step } of [there, alone]) {
      expect(await get()).toMatchObject({ status: 'error', errorCode: 'DISK_FULL', hostId: own });
      await askToWake(environment, request);
      expect(await step()).toMatchObject({ do: 'start', hostId: own });
    }
    expect(await remains()).toEqual([]);
  });
});

test('A computer does not go back to a host that has still an old home of it', async () => {
  const { request, step } = await buildOn('stopped');
  await silence(own);
  await askToWake(environment, request);
  await step();
  await silence(other);
  await environment.database.pool.query('UPDATE computer_hosts SET seen_at = NOW(3) WHERE id = ?', [own]);
  expect(await step()).toEqual({ do: 'rest' });
  await environment.database.pool.query('DELETE FROM computer_remains WHERE host_id = ?', [own]);
  await askToWake(environment, request);
  expect(await step()).toMatchObject({ do: 'start', hostId: own });
});

describe('Cordon and drain', () => {
  test('A cordoned host gets no further computers, but keeps its own', async () => {
    await cordonHost(environment, own, true);
    const [there, unplaced] = [await buildOn('stopped'), await buildOn('created')];
    await environment.database.pool.query('UPDATE computers SET host_id = NULL WHERE id = ?', [unplaced.id]);
    await askToWake(environment, there.request);
    await askToWake(environment, unplaced.request);
    expect(await there.step()).toMatchObject({ do: 'start', hostId: own });
    expect(await unplaced.step()).toMatchObject({ do: 'start', hostId: other });
    await expect(cordonHost(environment, 'hst_absent', true)).rejects.toMatchObject({ kind: 'notFound' });
  });

  test('A running computer stops, is saved, and starts elsewhere; a stopped one waits there for its wake', async () => {
    const [running, stopped] = [await buildOn('running'), await buildOn('stopped')];
    expect(await drainHost(environment, own)).toEqual({ left: 2, stuck: [] });
    const end = (id: string, step: 'stop' | 'release' | 'start', generation = 1) =>
      endStep(environment, { computerId: id, generation, step });
    expect(await running.step()).toMatchObject({ do: 'stop', hostId: own });
    await end(running.id, 'stop');
    for (const { id, step } of [running, stopped]) {
      expect(await step()).toMatchObject({ do: 'release', hostId: own, generation: 1 });
      await end(id, 'release');
    }
    expect(await running.step()).toMatchObject({ do: 'start', hostId: other, generation: 2 });
    await end(running.id, 'start', 2);
    expect(await running.get()).toMatchObject({ status: 'running', wish: null, wakesAfterMove: false });
    expect(await stopped.step()).toEqual({ do: 'rest' });
    expect(await stopped.get()).toMatchObject({ status: 'stopped', wish: null, hostId: null });
    expect(await drainHost(environment, own)).toEqual({ left: 0, stuck: [] });
  });

  test('A computer runs on until another host has room', async () => {
    const { step, get } = await buildOn('running');
    await drainHost(environment, own);
    await environment.database.pool.query('UPDATE computer_hosts SET max_running = 0 WHERE id = ?', [other]);
    expect(await step()).toMatchObject({ do: 'watch' });
    expect(await get()).toMatchObject({ status: 'running', wish: 'move' });
  });

  test('A wake during the move is carried out after it, and a stop keeps the computer stopped', async () => {
    const { id, request, step, get } = await buildOn('stopped');
    await drainHost(environment, own);
    const { operation } = await askToWake(environment, request);
    expect(await get()).toMatchObject({ wish: 'move', wakesAfterMove: true });
    expect((await askToStop(environment, request)).operation).toBeUndefined();
    await operation?.reload();
    expect(operation).toMatchObject({ status: 'failed', errorCode: 'COMPUTER_STOPPED' });
    await askToWake(environment, request);
    await step();
    await endStep(environment, { computerId: id, generation: 1, step: 'release' });
    expect(await step()).toMatchObject({ do: 'start', hostId: other });
  });

  test('A home that cannot be saved stays, and its computer starts again where it was', async () => {
    const { id, step, get } = await buildOn('running');
    await drainHost(environment, own);
    await step();
    await endStep(environment, { computerId: id, generation: 1, step: 'stop' });
    await environment.database.pool.query("UPDATE computers SET home_save_failed = 'QUOTA_EXCEEDED' WHERE id = ?", [
      id,
    ]);
    await endStep(environment, { computerId: id, generation: 1, step: 'release', code: 'QUOTA_EXCEEDED' });
    expect(await step()).toMatchObject({ do: 'start', hostId: own, generation: 2 });
    await endStep(environment, { computerId: id, generation: 2, step: 'start' });
    expect(await get()).toMatchObject({ status: 'running', hostId: own, wish: null });
  });

  test('A drain without another host is refused', async () => {
    await cordonHost(environment, other, true);
    await expect(drainHost(environment, own)).rejects.toMatchObject({ code: 'NO_OTHER_HOST' });
    await silence(own);
    await expect(drainHost(environment, own)).rejects.toMatchObject({ code: 'HOST_LOST' });
  });
});

test('A copy of a computer between two hosts begins with its save', async () => {
  const { request, get } = await buildOn('stopped');
  await environment.database.pool.query('UPDATE computers SET host_id = NULL WHERE id = ?', [request.computerId]);
  const computers = createComputers(
    environment.database,
    await openEnvelope(environment.database, environment.config),
    environment.config,
  );
  const asked = await askToFork({ ...environment, computers }, { ...request, id: newId('computer') });
  const { homeSaveId } = await get();
  expect(asked).toMatchObject({ operation: undefined, computer: { homeSaveId, hostId: null } });
});
