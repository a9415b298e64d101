import { newId } from '../../../base/ids.ts';
import { endStep } from '../../../models/computers/ends.ts';
import { askForSystem } from '../../../models/computers/newSystem.ts';
import { askToRestore, beginRestore, noteSystem } from '../../../models/computers/restoring.ts';
import { findSave } from '../../../models/computers/saveRows.ts';
import { beginSave, completeSave, noteTaken } from '../../../models/computers/saves.ts';
import { listSnapshots } from '../../../models/computers/snapshots.ts';
import { nextStep } from '../../../models/computers/steps.ts';
import { askToRecover } from '../../../models/computers/wishes.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { buildComputerRow, removeComputerRows, reportTestHost, silenceHost } from '../../builders/computerRows.ts';
import { environmentRows } from '../../builders/environmentRows.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The rows of a computer that gets the system of an environment, step by step, also when the host is lost in between.

let environment: TestEnvironment;
let hostId: string;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());
beforeEach(async () => {
  await removeComputerRows(environment);
  hostId = newId('computerHost');
  await report({ bases: ['debian'] });
  jest.spyOn(process, 'uptime').mockReturnValue(3_600);
});
afterEach(() => jest.restoreAllMocks());

const report = (more: { bases: 'debian'[] }) => reportTestHost(environment, { id: hostId, ...more });
const loseHost = () => silenceHost(environment, hostId);

/** A space with an environment of two versions, and a stopped computer with a saved home and no system of its own. */
async function build() {
  const { database } = environment;
  const { id, spaceId, userId, request, set, get } = await buildComputerRow(environment);
  const head = saveRow({ spaceId, computerId: id });
  const systems = [1, 2].map(() => ({ ...saveRow({ spaceId, computerId: newId('computer') }), base: 'debian' }));
  const { environments, environment_versions: version } = environmentRows({ spaceId, createdBy: userId });
  const versions = systems.map((save, index) => ({
    ...version,
    id: newId('environmentVersion'),
    number: index + 1,
    status: 'ready',
    error_code: null,
    env: '{"A":"1"}',
    user_name: 'app',
    save_id: save.id,
  }));
  await insertRows(database, { environments });
  for (const home_saves of [head, ...systems]) await insertRows(database, { home_saves });
  for (const environment_versions of versions) await insertRows(database, { environment_versions });
  await set({ status: 'stopped', hostId, generation: 1, homeSaveId: head.id });
  return {
    id,
    request,
    head: head.id,
    versions: versions.map(({ id: versionId, save_id: saveId }) => ({ versionId, saveId })),
    get,
    ask: (environmentVersion?: number) =>
      askForSystem(environment, { ...request, environmentId: environments.id, environmentVersion }),
    step: async () => (await nextStep(environment, id)).do,
    end: (code?: string) =>
      endStep(environment, { computerId: id, generation: 1, step: 'restore', ...(code !== undefined && { code }) }),
    begin: () => beginRestore(database, id),
    set,
    /** Discards a home that could not be filled. */
    async discard() {
      await set({ status: 'error', wish: null, errorCode: 'SAVE_BROKEN' });
      await askToRecover(environment, { ...request, discardHome: true });
      const { base, environmentVersionId, homeSaveId } = await get();
      return { base, environmentVersionId, homeSaveId };
    },
    note: () => noteSystem(database, id),
    /** Saves what is on the host. Returns the save, and its parent. */
    save: async (kept: string[]) => {
      const begun = await beginSave(database, { computerId: id, hostId }, kept);
      if (begun === undefined) throw new Error('The host may not save the computer.');
      const taken = { takenAt: new Date(), homeBytes: 1, uid: null, format: 'btrfs' } as const;
      const noted = await noteTaken(database, begun, taken, kept);
      await completeSave(database, begun);
      return { id: begun.id, parentId: noted?.parentId };
    },
    names: async () => {
      const { data } = await listSnapshots(database, { spaceId }, { limit: 100 });
      return data.map(({ name, saveId, base, environmentVersionId }) => ({ name, saveId, base, environmentVersionId }));
    },
    ends: async () => {
      const { Operation } = operationModels(database);
      const all = await Operation.findAll({ where: { spaceId, kind: 'restoreComputer' }, order: [['id', 'ASC']] });
      return all.map((one) => one.errorCode ?? one.status);
    },
  };
}

const none = { base: null, environmentVersionId: null };

test('A computer gets the newest system beside its home, after what it had has a name', async () => {
  const { ask, get, step, begin, end, save, names, ends, head, versions } = await build();
  const [, newest] = versions;
  await ask();
  expect(await step()).toBe('restore');
  expect(await begin()).toMatchObject({ saveId: newest?.saveId, keepsHome: true, base: 'debian' });
  expect(await names()).toMatchObject([{ saveId: head, ...none }]);
  // The row says what the computer has until that is done, and its saves already say what they are of.
  expect(await get()).toMatchObject({ ...none, homeSaveId: head, restoreBegan: true });
  const saved = await save([head, newest?.saveId ?? '']);
  expect(saved.parentId).toBe(newest?.saveId);
  // The host repeats it, as after a kill.
  await begin();
  expect(await names()).toHaveLength(1);
  await end();
  const system = { base: 'debian', environmentVersionId: newest?.versionId };
  expect(await get()).toMatchObject({ ...system, homeSaveId: saved.id, restoreBegan: false, wish: null });
  expect(await findSave(environment.database.pool, saved.id)).toMatchObject(system);
  expect(await ends()).toEqual(['succeeded']);
  expect((await ask()).operation).toBeUndefined();
});

test('A discarded home leaves the system of the version, or of the newest one, or else only the base', async () => {
  const { versions, head, set, discard, names } = await build();
  const [first, second] = versions;
  const base = 'debian';
  await set({ base, environmentVersionId: first?.versionId, homeSaveId: head });
  const ofFirst = { base, environmentVersionId: first?.versionId, homeSaveId: first?.saveId };
  expect(await discard()).toEqual(ofFirst);
  // That cannot be opened either.
  expect(await discard()).toEqual({ base, environmentVersionId: second?.versionId, homeSaveId: second?.saveId });
  expect(await discard()).toEqual({ base, environmentVersionId: null, homeSaveId: null });
  expect(await discard()).toEqual({ base, environmentVersionId: null, homeSaveId: null });
  expect(await names()).toEqual([]);
  await set({ environmentVersionId: first?.versionId, homeSaveId: first?.saveId });
  await environment.database.pool.query('UPDATE environments SET deleted_at = NOW(3)');
  expect(await discard()).toEqual({ base, environmentVersionId: null, homeSaveId: null });
});

test('A computer without a system has nothing left of a discarded home', async () => {
  const { discard } = await build();
  expect(await discard()).toEqual({ ...none, homeSaveId: null });
});

test('A system that could not be saved is there all the same', async () => {
  const { ask, get, step, begin, note, end, ends, head, versions } = await build();
  await ask();
  await step();
  await begin();
  await note();
  await end('QUOTA_EXCEEDED');
  expect(await get()).toMatchObject({ environmentVersionId: versions[1]?.versionId, homeSaveId: head, wish: null });
  expect(await ends()).toEqual(['succeeded']);
});

test('A system that could not be given leaves the computer as it was', async () => {
  const { ask, get, step, begin, end, ends, head } = await build();
  await ask();
  await step();
  await begin();
  await end('DISK_FULL');
  expect(await get()).toMatchObject({ ...none, homeSaveId: head, restoreBegan: false, wish: null });
  expect(await ends()).toEqual(['DISK_FULL']);
});

test.each(['before', 'after'])(
  'When the host is lost %s the new system is saved, the computer is what its head is',
  async (when) => {
    const { ask, get, step, begin, note, save, ends, head, versions } = await build();
    const [, newest] = versions;
    await ask();
    await step();
    await begin();
    await note();
    const saved = when === 'after' ? await save([head, newest?.saveId ?? '']) : undefined;
    await loseHost();
    expect(await step()).toBe('rest');
    const system = { base: 'debian', environmentVersionId: newest?.versionId };
    expect(await get()).toMatchObject({
      ...(saved === undefined ? none : system),
      homeSaveId: saved?.id ?? head,
      hostId: null,
      wish: null,
      restoreBegan: false,
    });
    expect(await ends()).toEqual([saved === undefined ? 'HOST_LOST' : 'succeeded']);
  },
);

test('A restore gives back the system of the snapshot', async () => {
  const { ask, get, step, begin, end, save, names, request, head, versions } = await build();
  await ask(1);
  await step();
  await begin();
  await save([head, versions[0]?.saveId ?? '']);
  await end();
  expect(await get()).toMatchObject({ environmentVersionId: versions[0]?.versionId });
  const { database } = environment;
  const { data } = await listSnapshots(database, { spaceId: request.spaceId }, { limit: 1 });
  await askToRestore(environment, { ...request, snapshotId: data[0]?.id ?? '' });
  await step();
  expect(await begin()).toMatchObject({ saveId: head, keepsHome: false, base: null });
  await end();
  expect(await get()).toMatchObject({ ...none, homeSaveId: head });
  expect(await names()).toMatchObject([{ base: 'debian', environmentVersionId: versions[0]?.versionId }, none]);
});

test('A computer without a host gets a system at once if it was never used, and is refused otherwise', async () => {
  const { ask, get, id, versions } = await build();
  const { pool } = environment.database;
  await pool.query('UPDATE computers SET host_id = NULL WHERE id = ?', [id]);
  await expect(ask()).rejects.toMatchObject({ code: 'COMPUTER_UNPLACED' });
  await pool.query('UPDATE computers SET home_save_id = NULL WHERE id = ?', [id]);
  for (const [index, { versionId, saveId }] of versions.entries()) {
    expect((await ask(index + 1)).operation).toBeUndefined();
    expect(await get()).toMatchObject({ base: 'debian', environmentVersionId: versionId, homeSaveId: saveId });
  }
});

test('A system is refused where no host has the base, or the computer wants another driver', async () => {
  const { ask, id } = await build();
  await environment.database.pool.query("UPDATE computers SET driver = 'gvisor' WHERE id = ?", [id]);
  await expect(ask()).rejects.toMatchObject({ code: 'DRIVER_NOT_OFFERED' });
  await environment.database.pool.query('UPDATE computers SET driver = NULL WHERE id = ?', [id]);
  await report({ bases: [] });
  await expect(ask()).rejects.toMatchObject({ code: 'ENVIRONMENTS_UNAVAILABLE' });
});
