import { newId } from '../../../base/ids.ts';
import { endStep } from '../../../models/computers/ends.ts';
import { askToRestore, beginRestore } from '../../../models/computers/restoring.ts';
import { findSnapshot, listSnapshots, unmadeSnapshots } from '../../../models/computers/snapshots.ts';
import {
  askForSnapshot,
  deleteSnapshot,
  failLostSnapshot,
  keepSnapshot,
  nextOfSnapshot,
} from '../../../models/computers/snapshotting.ts';
import { nextStep } from '../../../models/computers/steps.ts';
import { askToStop, askToWake } from '../../../models/computers/wishes.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { buildComputerRow, removeComputerRows, reportTestHost, silenceHost } from '../../builders/computerRows.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The rows of snapshots and restores, step by step, also when the host is lost in between.

let environment: TestEnvironment;
let hostId: string;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());
beforeEach(async () => {
  await removeComputerRows(environment);
  hostId = await reportTestHost(environment);
  jest.spyOn(process, 'uptime').mockReturnValue(3_600);
});
afterEach(() => jest.restoreAllMocks());

const loseHost = () => silenceHost(environment, hostId);

/** A computer on the host with a saved home, and a snapshot of an earlier home. */
async function build(status: string) {
  const { database } = environment;
  const { id, spaceId, userId, set, get, ...built } = await buildComputerRow(environment);
  const [early, head] = [1, 2].map(() => saveRow({ spaceId, computerId: id }));
  const snapshotId = newId('computerSnapshot');
  const named = { id: snapshotId, spaceId, computerId: id, saveId: early?.id, name: 'Early' };
  for (const save of [early, head]) await insertRows(database, { home_saves: save ?? {} });
  await insertRows(database, { computer_snapshots: { ...named, createdBy: userId, createdAt: new Date() } });
  await set({ status, hostId, generation: 1, homeSaveId: head?.id });
  const request = { ...built.request, snapshotId };
  const { Operation } = operationModels(database);
  return {
    id,
    request,
    saves: { early: early?.id, head: head?.id },
    get,
    step: async () => (await nextStep(environment, id)).do,
    end: (step: 'stop' | 'restore', code?: string) =>
      endStep(environment, { computerId: id, generation: 1, step, ...(code !== undefined && { code }) }),
    restore: () => askToRestore(environment, request),
    take: async () => {
      const taken = newId('computerSnapshot');
      await askForSnapshot(environment, { ...request, id: taken });
      return taken;
    },
    names: async () => {
      const { data } = await listSnapshots(database, { spaceId }, { limit: 100 });
      return data.map(({ name, saveId }) => ({ name, saveId }));
    },
    ends: async (kind: string) => {
      const all = await Operation.findAll({ where: { spaceId, kind }, order: [['id', 'ASC']] });
      return all.map((one) => one.errorCode ?? one.status);
    },
  };
}

test('A running computer is stopped, its home kept and replaced, and it starts again', async () => {
  const { id, restore, step, end, get, names, saves, ends } = await build('running');
  await restore();
  expect(await step()).toBe('stop');
  await end('stop');
  expect(await step()).toBe('restore');
  // The worker may be killed before and after it has replaced the home.
  for (let attempt = 0; attempt < 2; attempt++) {
    expect(await beginRestore(environment.database, id)).toMatchObject({ saveId: saves.early, keepsHome: false });
    expect(await names()).toEqual([
      { name: 'Before restoring Early', saveId: saves.head },
      { name: 'Early', saveId: saves.early },
    ]);
  }
  await end('restore');
  expect(await get()).toMatchObject({ homeSaveId: saves.early, wish: 'wake', hostId, restoresId: null });
  expect(await ends('restoreComputer')).toEqual(['succeeded']);
  expect(await step()).toBe('start');
});

test('The late end of a restore is not the end of the next one', async () => {
  const { id, restore, step, end, get, saves } = await build('stopped');
  const order = async () => {
    const next = await nextStep(environment, id);
    if (!('number' in next)) throw new Error(`There is no step to take, but ${next.do}.`);
    return { computerId: id, generation: next.generation, number: next.number, step: next.do };
  };
  await restore();
  const first = await order();
  // Its end was recorded, and the same report comes again when the next restore waits.
  await endStep(environment, first);
  expect(await get()).toMatchObject({ homeSaveId: saves.early, wish: null });
  const { database } = environment;
  await database.pool.query('UPDATE computers SET home_save_id = ? WHERE id = ?', [saves.head, id]);
  await restore();
  await endStep(environment, first);
  expect(await get()).toMatchObject({ homeSaveId: saves.head, wish: 'restore' });
  // A restore that was given up while its step is under way.
  const second = await order();
  await end('restore', 'SAVE_BROKEN');
  await restore();
  await endStep(environment, second);
  expect(await get()).toMatchObject({ homeSaveId: saves.head, wish: 'restore' });
  expect(await step()).toBe('restore');
});

test('A restore that fails leaves the computer as it was', async () => {
  const { restore, step, end, get, saves, ends } = await build('running');
  await restore();
  await step();
  await end('stop');
  await end('restore', 'SAVE_BROKEN');
  expect(await get()).toMatchObject({ homeSaveId: saves.head, wish: 'wake', hostId, wakesAfterMove: false });
  expect(await ends('restoreComputer')).toEqual(['SAVE_BROKEN']);
});

test.each([
  ['running', askToStop, null],
  ['stopped', askToWake, 'wake'],
] as const)('An order for a %s computer during its restore decides whether it runs after that', async (...row) => {
  const [status, ask, wish] = row;
  const { request, restore, step, end, get, saves, ends } = await build(status);
  await restore();
  await step();
  if (status === 'running') await end('stop');
  await ask(environment, request);
  // The order has interrupted the step, which is taken again.
  await end('restore', 'COMPUTER_STOPPED');
  expect(await step()).toBe('restore');
  await end('restore');
  expect(await get()).toMatchObject({ status: 'stopped', homeSaveId: saves.early, wish });
  expect(await ends('restoreComputer')).toEqual(['succeeded']);
});

test.each(['before', 'after'])('If the host is lost %s the request, the restore needs no host', async (when) => {
  const { restore, step, end, get, names, saves, ends } = await build('running');
  if (when === 'before') await loseHost();
  await restore();
  if (when === 'after') {
    await end('stop');
    await loseHost();
    await end('restore', 'TIMED_OUT');
  }
  await step();
  expect(await get()).toMatchObject({ homeSaveId: saves.early, hostId: null });
  expect((await names())[0]).toEqual({ name: 'Before restoring Early', saveId: saves.head });
  expect(await ends('restoreComputer')).toEqual(['succeeded']);
  // What the host has and never saved becomes a snapshot when it is back.
  const [remains] = await environment.database.pool.query('SELECT host_id AS hostId FROM computer_remains');
  expect(remains).toEqual([{ hostId }]);
});

test('To go back is named like the restore that it undoes', async () => {
  const { id, restore, step, names, saves } = await build('running');
  const rename = "UPDATE computer_snapshots SET name = 'Before restoring Early' WHERE computer_id = ?";
  await environment.database.pool.query(rename, [id]);
  await loseHost();
  await restore();
  await step();
  expect((await names())[0]).toEqual({ name: 'Before restoring Early', saveId: saves.head });
});

test('One home at a time: a restore excludes other restores and snapshots, and keeps its snapshot', async () => {
  const { request, restore, take, ends } = await build('stopped');
  const { database } = environment;
  const taken = await take();
  await expect(restore()).rejects.toMatchObject({ code: 'COMPUTER_BUSY' });
  await expect(askToRestore(environment, { ...request, snapshotId: taken })).rejects.toMatchObject({
    code: 'SNAPSHOT_NOT_MADE',
  });
  expect(await nextOfSnapshot(environment, taken)).toEqual({ do: 'take', hostId });
  expect(await keepSnapshot(database, taken, 'hst_other')).toBe(false);
  expect(await keepSnapshot(database, taken, hostId)).toBe(true);
  expect(await nextOfSnapshot(environment, taken)).toEqual({ do: 'rest' });

  const first = await restore();
  expect((await restore()).operation?.id).toBe(first.operation?.id);
  await expect(askToRestore(environment, { ...request, snapshotId: taken })).rejects.toMatchObject({
    code: 'COMPUTER_BUSY',
  });
  await expect(take()).rejects.toMatchObject({ code: 'COMPUTER_BUSY' });
  await expect(deleteSnapshot(database, request)).rejects.toMatchObject({ code: 'SNAPSHOT_IN_USE' });
  expect(await ends('snapshotComputer')).toEqual(['succeeded']);
});

test('A snapshot fails once its operation has ended without it, and then restores go on', async () => {
  const { restore, take, ends } = await build('stopped');
  const { database } = environment;
  const taken = await take();
  expect(await failLostSnapshot(database, taken)).toBe(false);
  const { Operation } = operationModels(database);
  const lost = { status: 'failed', errorCode: 'WORKFLOW_LOST', endedAt: new Date() };
  await Operation.update(lost, { where: { subjectId: taken } });
  await expect(restore()).rejects.toMatchObject({ code: 'COMPUTER_BUSY' });
  const before = new Date(Date.now() + 1_000);
  expect((await unmadeSnapshots(database, { before })).map(({ id }) => id)).toContain(taken);
  expect(await failLostSnapshot(database, taken)).toBe(true);
  expect(await unmadeSnapshots(database, { before })).toEqual([]);
  expect(await findSnapshot(database.pool, taken)).toMatchObject({ failedCode: 'WORKFLOW_LOST', saveId: null });
  // The host may still be at it.
  expect(await keepSnapshot(database, taken, hostId)).toBe(true);
  expect(await findSnapshot(database.pool, taken)).toMatchObject({ failedCode: 'WORKFLOW_LOST', saveId: null });
  await restore();
  expect(await ends('snapshotComputer')).toEqual(['WORKFLOW_LOST']);
});

test('A snapshot ends when it is deleted, or its host is lost', async () => {
  const { request, take, ends, names } = await build('running');
  const { database } = environment;
  const deleted = await take();
  await deleteSnapshot(database, { ...request, snapshotId: deleted });
  expect(await nextOfSnapshot(environment, deleted)).toEqual({ do: 'rest' });
  const lost = await take();
  await loseHost();
  expect(await nextOfSnapshot(environment, lost)).toEqual({ do: 'rest' });
  expect(await ends('snapshotComputer')).toEqual(['SNAPSHOT_DELETED', 'HOST_LOST']);
  expect((await names()).map(({ saveId }) => saveId)).toEqual([null, expect.any(String)]);
  await expect(take()).rejects.toMatchObject({ code: 'HOST_LOST' });
});
