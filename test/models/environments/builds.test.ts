import { newId } from '../../../base/ids.ts';
import { findComputer, getComputer } from '../../../models/computers/computer.ts';
import { createComputers } from '../../../models/computers/computers.ts';
import { reportHost } from '../../../models/computers/hosts.ts';
import { collectSave, findSave } from '../../../models/computers/saveRows.ts';
import { transaction } from '../../../models/database/database.ts';
import {
  cancelBuild,
  failBuild,
  lostBuilds,
  nextOfBuild,
  noteBuildWaits,
} from '../../../models/environments/builds/builds.ts';
import { countLog } from '../../../models/environments/builds/keptLogs.ts';
import { noteStepBegun, noteStepEnd } from '../../../models/environments/builds/runningSteps.ts';
import { keepStep, stepToSave } from '../../../models/environments/builds/savedSteps.ts';
import { stepRows } from '../../../models/environments/builds/stepRows.ts';
import { deleteEnvironment } from '../../../models/environments/deletion.ts';
import { buildAgain, createEnvironment, updateEnvironment } from '../../../models/environments/environment.ts';
import { forgetLayers, letGo, oldVersions } from '../../../models/environments/letGo.ts';
import type { EnvironmentStep } from '../../../models/environments/steps.ts';
import { builderOf, findVersion, readyVersion } from '../../../models/environments/version.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The rows of builds, step by step. Hosts only appear as rows: what they do is noted as if they had done it.

const steps: EnvironmentStep[] = [{ run: 'one' }, { env: { A: '1' } }, { run: 'two' }, { run: 'three' }];

let environment: TestEnvironment;
let hostId: string;
beforeAll(async () => {
  environment = await createTestEnvironment({
    ATRIUM_ENVIRONMENTS_PER_SPACE: '3',
    ATRIUM_ENVIRONMENT_VERSIONS_PER_SPACE: '9',
    ATRIUM_ENVIRONMENT_VERSIONS_KEPT: '1',
  });
});
afterAll(() => environment.close());
beforeEach(async () => {
  await environment.database.pool.query('DELETE FROM computer_hosts');
  hostId = newId('computerHost');
  await report({ bases: ['debian'] });
});

const report = (more: { bases: 'debian'[] }) =>
  reportHost(environment.database, {
    id: hostId,
    address: null,
    drivers: ['bubblewrap'],
    cpuMilli: 2_000,
    memoryMiB: 8_192,
    maxRunning: 9,
    ...more,
  });

async function build() {
  const { database, config } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const spaceId = space.id;
  const actor = { userId: user.id, credentialId: null, address: null };
  const computers = createComputers(database, await openEnvelope(database, config), config);

  /** An environment, whose first version is ordered. */
  async function make(given: EnvironmentStep[] = steps, base = 'debian', name = newId('environment').toLowerCase()) {
    const id = newId('environment');
    const versionId = newId('environmentVersion');
    const definition = { base, steps: given, warnings: [] };
    await createEnvironment(environment, { id, versionId, spaceId, name, definition, actor });
    return { id, versionId };
  }

  /** Runs a step as a host would, in this generation of the computer. */
  async function run(
    versionId: string,
    number: number,
    { code, generation = 1, sealedLog = null }: { code?: string; generation?: number; sealedLog?: Buffer | null } = {},
  ) {
    const { computerId } = builderOf({ id: versionId, spaceId });
    const sql = "UPDATE computers SET host_id = ?, status = 'running', generation = ? WHERE id = ?";
    await database.pool.query(sql, [hostId, generation, computerId]);
    await noteStepBegun(environment, { versionId, number, generation });
    const end = { exitCode: code === undefined ? 0 : 1, code, logBytes: 0, sealedLog, sealedTail: null };
    await noteStepEnd(environment, { versionId, number }, end);
  }

  /** Saves what a step has made. */
  async function save(versionId: string, number: number): Promise<{ saveId: string; isKept: boolean }> {
    const computerId = await stepToSave(database, versionId, number);
    const row = saveRow({ spaceId, computerId: computerId ?? '' });
    await insertRows(database, { home_saves: row });
    await database.pool.query('UPDATE computers SET home_save_id = ? WHERE id = ?', [row.id, computerId]);
    return { saveId: row.id, isKept: await keepStep(database, { versionId, number, hostId }) };
  }

  /** Walks through a build to its end. Returns the numbers of the steps that ran, and the last save. */
  async function walk(versionId: string) {
    const ran: number[] = [];
    for (let saveId: string | null = null; ; ) {
      const next = await nextOfBuild(environment, versionId);
      if (next.do === 'resolve') throw new Error('These builds have no images.');
      if (next.do === 'rest') return { ran, saveId, end: next.badEnd?.code ?? (await version(versionId)).status };
      if (next.do === 'run') {
        ran.push(next.number);
        await run(versionId, next.number);
      } else ({ saveId } = await save(versionId, next.number));
    }
  }

  async function version(versionId: string) {
    const found = await findVersion(database.pool, versionId);
    if (found === undefined) throw new Error(`There is no version ${versionId}.`);
    return found;
  }

  const again = async (environmentId: string, withoutCache = false) => {
    const versionId = newId('environmentVersion');
    await buildAgain(environment, { spaceId, environmentId, versionId, withoutCache, actor });
    return versionId;
  };
  const operation = async (versionId: string) => {
    const { Operation } = operationModels(database);
    const { status, errorCode } = await Operation.findByPk((await version(versionId)).operationId, {
      rejectOnEmpty: true,
    });
    return errorCode ?? status;
  };
  return {
    spaceId,
    actor,
    computers,
    make,
    run,
    save,
    walk,
    version,
    again,
    operation,
    next: (versionId: string) => nextOfBuild(environment, versionId),
    statuses: async (versionId: string) => (await stepRows(database.pool, [versionId])).map(({ status }) => status),
    builder: (versionId: string) => findComputer(database, builderOf({ id: versionId, spaceId }).computerId),
  };
}

test('The steps that change files run and are saved one by one, and the last save is the version', async () => {
  const { make, next, run, save, version, operation, statuses, builder, spaceId } = await build();
  const { id, versionId } = await make();
  expect(await statuses(versionId)).toEqual(['waiting', 'waiting', 'waiting', 'waiting']);
  expect(await next(versionId)).toEqual({ do: 'run', number: 0 });
  expect(await next(versionId)).toEqual({ do: 'run', number: 0 });
  expect(await builder(versionId)).toMatchObject({ base: 'debian', homeSaveId: null, status: 'created' });
  await run(versionId, 0);
  expect(await next(versionId)).toEqual({ do: 'save', number: 0, hostId });
  const first = await save(versionId, 0);
  expect(first.isKept).toBe(true);
  for (const number of [1, 3, 4]) {
    expect(await next(versionId)).toEqual({ do: 'run', number });
    await run(versionId, number);
    await save(versionId, number);
  }
  const { saveId } = await version(versionId);
  expect(await next(versionId)).toEqual({ do: 'rest' });
  expect(await version(versionId)).toMatchObject({ status: 'ready', saveId, env: { A: '1' }, user: null });
  expect(await operation(versionId)).toBe('succeeded');
  expect(await readyVersion(environment.database.pool, { spaceId, environmentId: id })).toMatchObject({
    id: versionId,
  });
  // The save of the base is kept for later builds.
  expect(await collectSave(environment.database, first.saveId)).toBe(0);
});

test('Steps that were built before are skipped, up to the first that differs', async () => {
  const { make, walk, version, again, statuses, actor, spaceId } = await build();
  const { id, versionId } = await make();
  const first = await walk(versionId);
  expect(first).toMatchObject({ ran: [0, 1, 3, 4], end: 'ready' });
  const same = await again(id);
  expect(await walk(same)).toMatchObject({ ran: [], end: 'ready' });
  expect((await version(same)).saveId).toBe(first.saveId);
  expect(await statuses(same)).toEqual(['kept', 'kept', 'kept', 'kept']);
  const definition = { base: 'debian', steps: steps.with(3, { run: 'other' }), warnings: [] };
  await updateEnvironment(environment, { spaceId, environmentId: id, definition, actor });
  expect(await walk(await again(id))).toMatchObject({ ran: [4], end: 'ready' });
  expect(await walk(await again(id, true))).toMatchObject({ ran: [1, 3, 4], end: 'ready' });
});

test('A new root file system is saved once for a space, and each of its environments begins with that', async () => {
  const { make, next, walk, builder } = await build();
  const plain = await make([]);
  const { saveId } = await walk(plain.versionId);
  for (const base of ['debian', 'agents']) {
    const { versionId } = await make([{ run: base }], base);
    expect(await next(versionId)).toEqual({ do: 'run', number: base === 'debian' ? 1 : 2 });
    expect(await builder(versionId)).toMatchObject({ base: 'debian', homeSaveId: saveId });
  }
  const other = await build();
  expect(await other.walk((await other.make()).versionId)).toMatchObject({ ran: [0, 1, 3, 4], end: 'ready' });
});

test('An environment begins with the newest ready version of its base', async () => {
  const { make, next, walk, version, builder } = await build();
  const base = await make([{ run: 'one' }, { env: { A: '1', B: '2' } }, { workdir: 'srv' }]);
  await expect(make([], base.id)).rejects.toMatchObject({ code: 'ENVIRONMENT_NOT_READY' });
  const { saveId } = await walk(base.versionId);
  const { versionId } = await make([{ env: { B: '3' } }, { run: 'two' }], base.id);
  await next(versionId);
  expect(await builder(versionId)).toMatchObject({ homeSaveId: saveId });
  expect(await walk(versionId)).toMatchObject({ ran: [2], end: 'ready' });
  expect(await version(versionId)).toMatchObject({ env: { A: '1', B: '3' }, workdir: '/srv' });
});

test('Without a step that changes files, a version is its base', async () => {
  const { make, walk, version } = await build();
  const plain = await make([{ env: { A: '1' } }]);
  expect(await walk(plain.versionId)).toMatchObject({ ran: [0], end: 'ready' });
  const { versionId } = await make([{ user: 'root' }, { env: { B: '2' } }], plain.id);
  expect(await walk(versionId)).toMatchObject({ ran: [], end: 'ready' });
  expect((await version(versionId)).saveId).toBe((await version(plain.versionId)).saveId);
});

test('A step that fails fails the build, and those before it stay built', async () => {
  const { make, next, run, save, version, operation, statuses, again, walk } = await build();
  const { id, versionId } = await make();
  await next(versionId);
  for (const number of [0, 1]) {
    await run(versionId, number);
    await save(versionId, number);
  }
  await run(versionId, 3, { code: 'STEP_FAILED' });
  expect(await next(versionId)).toEqual({ do: 'rest', badEnd: { status: 'failed', code: 'STEP_FAILED' } });
  expect(await version(versionId)).toMatchObject({ status: 'failed', errorCode: 'STEP_FAILED', saveId: null });
  expect(await operation(versionId)).toBe('STEP_FAILED');
  expect(await statuses(versionId)).toEqual(['done', 'done', 'failed', 'waiting']);
  expect(await walk(await again(id))).toMatchObject({ ran: [3, 4], end: 'ready' });
});

test('What a step has made is kept only if its computer was not started anew, and is still on its host', async () => {
  const { make, next, run, save, builder, operation } = await build();
  const { database } = environment;
  const { versionId } = await make();
  await next(versionId);
  await run(versionId, 0);
  await database.pool.query('UPDATE computers SET generation = 2 WHERE id = ?', [(await builder(versionId))?.id]);
  expect((await save(versionId, 0)).isKept).toBe(false);
  expect(await next(versionId)).toMatchObject({ badEnd: { code: 'BUILD_INTERRUPTED' } });
  expect(await operation(versionId)).toBe('BUILD_INTERRUPTED');
});

test('A worker that was held up neither begins a step again nor saves it with the files of later ones', async () => {
  const { make, next, run, save, statuses, spaceId } = await build();
  const { database } = environment;
  const { versionId } = await make();
  await next(versionId);
  const begin = (number: number, generation = 1) => noteStepBegun(environment, { versionId, number, generation });
  for (const number of [0, 1]) {
    await run(versionId, number);
    await save(versionId, number);
  }
  expect(await begin(1)).toBeUndefined();
  expect(await statuses(versionId)).toEqual(['done', 'done', 'waiting', 'waiting']);
  expect(await begin(3)).toBe(1);
  // Another worker has begun it, in this start of the computer.
  expect(await begin(3, 2)).toBe(1);
  const layers = async () => {
    const sql = 'SELECT digest, save_id FROM environment_layers WHERE space_id = ? ORDER BY digest';
    return (await database.pool.query(sql, [spaceId]))[0];
  };
  const before = await layers();
  // As it was after an earlier version of Atrium.
  await database.pool.query("UPDATE environment_steps SET status = 'ran' WHERE version_id = ? AND number = 1", [
    versionId,
  ]);
  expect((await save(versionId, 1)).isKept).toBe(false);
  expect(await layers()).toEqual(before);
});

test('The result of a step stays as it is, unless its save is gone or the build is to use none', async () => {
  const { make, next, run, save, version, walk, again, spaceId } = await build();
  const { database } = environment;
  const one = [{ run: 'one' }];
  const [first, second] = [await make(one), await make(one)];
  for (const { versionId } of [first, second]) await next(versionId);
  const layer = async () => {
    const sql = `SELECT l.save_id FROM environment_layers l JOIN environment_steps s ON s.digest = l.digest
      WHERE l.space_id = ? AND s.version_id = ? AND s.number = 1`;
    const [rows] = await database.pool.query(sql, [spaceId, first.versionId]);
    return (rows as { save_id: string }[])[0]?.save_id;
  };
  const saved: string[] = [];
  for (const { versionId } of [first, second]) {
    for (const number of [0, 1]) {
      await run(versionId, number);
      saved.push((await save(versionId, number)).saveId);
    }
  }
  expect(await layer()).toBe(saved[1]);
  expect((await version(second.versionId)).saveId).toBe(saved[3]);
  for (const { versionId } of [first, second]) await walk(versionId);
  await walk(await again(first.id, true));
  expect(await layer()).not.toBe(saved[1]);
  await database.pool.query('DELETE FROM home_saves WHERE id = ?', [await layer()]);
  const gone = await layer();
  const { ran } = await walk(await again(first.id));
  expect(ran).toEqual([1]);
  expect(await layer()).not.toBe(gone);
});

test('The logs of the oldest builds go once those of the space take too much', async () => {
  const { make, next, run, version, again } = await build();
  const { database } = environment;
  const [old, running, newest] = [await make(), await make(), await make()];
  const log = async ({ versionId }: { versionId: string }, most: number) => {
    const sql =
      "UPDATE environment_steps SET sealed_log = REPEAT('a', 100), log_bytes = 500 WHERE version_id = ? AND number = 1";
    await database.pool.query(sql, [versionId]);
    const locked = await version(versionId);
    await transaction(database, (tx) => countLog(tx, locked, 100, most));
  };
  const left = async ({ versionId }: { versionId: string }) => {
    const sql = `SELECT s.sealed_log IS NOT NULL AS hasLog, v.stored_log_bytes AS bytes FROM environment_steps s
      JOIN environment_versions v ON v.id = s.version_id WHERE s.version_id = ? AND s.number = 1`;
    const [[row] = []] = (await database.pool.query(sql, [versionId])) as unknown as [
      { hasLog: number; bytes: unknown }[],
    ];
    return [row?.hasLog, Number(row?.bytes)];
  };
  for (const { versionId } of [old, running, newest]) await next(versionId);
  await log(old, 250);
  await log(running, 250);
  await cancelBuild(environment, old.versionId);
  expect(await left(old)).toEqual([1, 100]);
  await log(newest, 250);
  expect([await left(old), await left(running), await left(newest)]).toEqual([
    [0, 0],
    [1, 100],
    [1, 100],
  ]);
  // Those of builds that run stay, however much they take.
  await log(newest, 1);
  expect([await left(running), await left(newest)]).toEqual([
    [1, 100],
    [1, 200],
  ]);
  // The end of a step counts what it stores.
  const more = { versionId: await again(old.id) };
  await next(more.versionId);
  await run(more.versionId, 0, { sealedLog: Buffer.alloc(40), code: 'STEP_FAILED' });
  expect((await left(more))[1]).toBe(40);
});

test('A build fails when its computer is deleted, or when there is no room for one any more', async () => {
  const { make, next, run, builder, operation, walk, again, spaceId } = await build();
  const { pool } = environment.database;
  const { versionId } = await make();
  await next(versionId);
  await run(versionId, 1);
  await pool.query('UPDATE computers SET deleted_at = NOW(3) WHERE id = ?', [(await builder(versionId))?.id]);
  expect(await next(versionId)).toMatchObject({ badEnd: { code: 'BUILDER_DELETED' } });
  const known = await make();
  await walk(known.versionId);
  const other = await make([{ run: 'other' }]);
  const of = { space_id: spaceId, name: 'C', env_names: '[]', status: 'created', status_at: new Date(), generation: 0 };
  for (let count = 0; count < 20; count++) {
    await insertRows(environment.database, {
      computers: { ...of, id: newId('computer'), created_at: new Date() },
    });
  }
  expect(await next(other.versionId)).toMatchObject({ badEnd: { code: 'TOO_MANY_COMPUTERS' } });
  expect(await operation(other.versionId)).toBe('TOO_MANY_COMPUTERS');
  // Later builds are refused when they are asked for, unless they need no computer.
  const full = { code: 'TOO_MANY_COMPUTERS', quota: { limit: 20, used: expect.any(Number) } };
  await expect(again(other.id)).rejects.toMatchObject(full);
  await expect(again(known.id, true)).rejects.toMatchObject(full);
  expect(await walk(await again(known.id))).toMatchObject({ ran: [], end: 'ready' });
});

test('Why a build waits is news once for each reason', async () => {
  const { make, next, run, version } = await build();
  const { versionId } = await make();
  await next(versionId);
  const note = (code: string) => noteBuildWaits(environment, versionId, code);
  expect([await note('NO_HOST'), await note('NO_HOST'), await note('TOO_MANY_RUNNING')]).toEqual([true, false, true]);
  expect(await version(versionId)).toMatchObject({ waitsFor: 'TOO_MANY_RUNNING' });
  await run(versionId, 0);
  expect(await version(versionId)).toMatchObject({ waitsFor: null });
  await cancelBuild(environment, versionId);
  expect(await note('NO_HOST')).toBe(false);
});

test('A build that has ended ends once', async () => {
  const { make, next, version, operation } = await build();
  const { versionId } = await make();
  await next(versionId);
  await cancelBuild(environment, versionId);
  await failBuild(environment, versionId, 'STEP_FAILED');
  expect(await version(versionId)).toMatchObject({ status: 'cancelled', errorCode: null });
  expect(await operation(versionId)).toBe('cancelled');
  expect(await next(versionId)).toEqual({ do: 'rest', badEnd: { status: 'cancelled', code: null } });
  expect(await next(newId('environmentVersion'))).toEqual({ do: 'rest' });
});

test('A build whose operation was ended without it is found', async () => {
  const { make, next, version } = await build();
  const { database } = environment;
  const [lost, running] = [await make(), await make()];
  for (const { versionId } of [lost, running]) await next(versionId);
  const end = { status: 'failed', code: 'WORKFLOW_LOST', detail: '' } as const;
  const { operationId } = await version(lost.versionId);
  await transaction(database, (tx) => operationModels(tx).Operation.end(operationId, end, tx));
  const found = await lostBuilds(database, { before: new Date(Date.now() + 1_000) });
  expect(found).toMatchObject([{ id: lost.versionId, isCancelled: 0 }]);
  await failBuild(environment, lost.versionId, 'WORKFLOW_LOST');
  expect(await lostBuilds(database, { before: new Date(Date.now() + 1_000) })).toEqual([]);
});

test('A space has so many environments and versions as the operator says, and names are unique', async () => {
  const { make, walk, again } = await build();
  const { id, versionId } = await make(steps, 'debian', 'tools');
  await expect(make(steps, 'debian', 'tools')).rejects.toMatchObject({ code: 'ENVIRONMENT_NAME_TAKEN' });
  await expect(make(steps, 'debian', 'agents')).rejects.toMatchObject({ code: 'ENVIRONMENT_NAME_TAKEN' });
  await expect(make(steps, 'ubuntu')).rejects.toMatchObject({ code: 'ENVIRONMENT_BASE_UNKNOWN' });
  await expect(again(id)).rejects.toMatchObject({ code: 'ENVIRONMENT_BUILDING' });
  await make(steps, 'tools').catch((error: { code: string }) => expect(error.code).toBe('ENVIRONMENT_NOT_READY'));
  await walk(versionId);
  await make(steps, 'tools');
  await make();
  const most = { code: 'TOO_MANY_ENVIRONMENTS', message: expect.stringContaining('at most 3') };
  await expect(make()).rejects.toMatchObject(most);
  for (let count = 3; count < 9; count++) await walk(await again(id));
  const versions = { code: 'TOO_MANY_VERSIONS', message: expect.stringContaining('at most 9') };
  await expect(again(id)).rejects.toMatchObject(versions);
});

test('Nothing is built where no host has the base', async () => {
  const { make } = await build();
  await report({ bases: [] });
  await expect(make()).rejects.toMatchObject({ code: 'ENVIRONMENTS_UNAVAILABLE', kind: 'unavailable' });
});

test('An old version goes once no computer is of it, with its save', async () => {
  const { make, walk, again, version, computers, spaceId, actor } = await build();
  const { database } = environment;
  const { id, versionId } = await make();
  const { saveId } = await walk(versionId);
  const computerId = newId('computer');
  await computers.create(spaceId, computerId, { environmentId: id }, actor);
  expect(await getComputer(database, spaceId, computerId)).toMatchObject({
    base: 'debian',
    environmentVersionId: versionId,
    homeSaveId: saveId,
  });
  const newer = await again(id, true);
  await walk(newer);
  const old = async () => {
    const rows = await oldVersions(database, { before: new Date(Date.now() + 1_000) });
    return rows.filter((row) => row.spaceId === spaceId);
  };
  expect((await old()).map((row) => row.id)).toEqual([versionId]);
  // It can no longer be chosen, but its computer needs it.
  await expect(readyVersion(database.pool, { spaceId, environmentId: id, number: 1 })).rejects.toMatchObject({
    code: 'ENVIRONMENT_NOT_READY',
  });
  expect(await letGo(database, { id: versionId, spaceId })).toBe(false);
  await database.pool.query('DELETE FROM computers WHERE id = ?', [computerId]);
  expect(await letGo(database, { id: newer, spaceId })).toBe(false);
  expect(await letGo(database, { id: versionId, spaceId })).toBe(true);
  await expect(version(versionId)).rejects.toThrow();
  await forgetLayers(database, new Date(Date.now() + 1_000), () => undefined);
  await database.pool.query('DELETE FROM computers WHERE space_id = ?', [spaceId]);
  expect(await collectSave(database, saveId ?? '')).toBe(1);
  expect(await findSave(database.pool, saveId ?? '')).toBeUndefined();
});

test('A deleted environment goes with its last version', async () => {
  const { make, walk, spaceId, actor } = await build();
  const { database } = environment;
  const { id, versionId } = await make();
  const remove = () => deleteEnvironment(environment, { spaceId, environmentId: id, isForced: false, actor });
  await expect(remove()).rejects.toMatchObject({ code: 'ENVIRONMENT_BUILDING' });
  await walk(versionId);
  await remove();
  await expect(remove()).rejects.toMatchObject({ kind: 'notFound' });
  expect(await letGo(database, { id: versionId, spaceId })).toBe(true);
  const [rows] = await database.pool.query('SELECT id FROM environments WHERE id = ?', [id]);
  expect(rows).toEqual([]);
});
