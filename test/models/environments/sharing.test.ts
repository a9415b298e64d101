import { fillHome } from '../../../activities/computers/fillHome.ts';
import { newId } from '../../../base/ids.ts';
import { getComputer } from '../../../models/computers/computer.ts';
import { createComputers } from '../../../models/computers/computers.ts';
import { askForSystem } from '../../../models/computers/newSystem.ts';
import { collectSave, findSave } from '../../../models/computers/saveRows.ts';
import { takeBack } from '../../../models/environments/claims.ts';
import { deleteEnvironment } from '../../../models/environments/deletion.ts';
import {
  buildAgain,
  createEnvironment,
  getEnvironment,
  listEnvironments,
  updateEnvironment,
} from '../../../models/environments/environment.ts';
import { letGo } from '../../../models/environments/letGo.ts';
import { environmentsOfAll, shareEnvironment } from '../../../models/environments/sharing.ts';
import { usedEnvironments } from '../../../models/environments/used.ts';
import { listVersions, readyVersion } from '../../../models/environments/version.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { reportTestHost } from '../../builders/computerRows.ts';
import { environmentRows, insertReadyEnvironment } from '../../builders/environmentRows.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Environments that an operator lets all spaces use. Hosts only appear as rows.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
  await reportTestHost(environment, { id: newId('computerHost'), bases: ['debian'] });
});
afterAll(() => environment.close());

async function spaceOf() {
  const { database, config } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const spaceId = space.id;
  const actor = { userId: user.id, credentialId: null, address: null };
  const computers = createComputers(database, await openEnvelope(database, config), config);
  return {
    identity,
    spaceId,
    actor,
    computer: (fields: object) => computers.create(spaceId, newId('computer'), fields, actor),
    list: async () => (await listEnvironments(database, spaceId, { limit: 100 })).data.map(({ id }) => id),
    make: (base: string) => {
      const [id, versionId] = [newId('environment'), newId('environmentVersion')];
      const definition = { base, steps: [{ run: 'one' }], warnings: [] };
      return createEnvironment(environment, { id, versionId, spaceId, name: id.toLowerCase(), definition, actor });
    },
    remove: (environmentId: string, isForced = false) =>
      deleteEnvironment(environment, { spaceId, environmentId, isForced, actor }),
  };
}

async function build() {
  const [owner, other] = [await spaceOf(), await spaceOf()];
  const { spaceId, actor } = owner;
  const name = newId('environment').toLowerCase();
  const made = await insertReadyEnvironment(environment.database, { spaceId, createdBy: actor.userId }, { name });
  const share = (isShared: boolean) => shareEnvironment(environment.database, made.id, isShared);
  return { owner, other, share, name, ...made };
}

const query = (sql: string, values: unknown[]) => environment.database.pool.query(sql, values);

test('Another space sees and uses an environment while it is shared, and never changes it', async () => {
  const { owner, other, share, id, name, saveId, versionId } = await build();
  const of = { spaceId: other.spaceId, environmentId: id, actor: other.actor };
  expect(await other.list()).not.toContain(id);
  await expect(other.computer({ environmentId: id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await share(true)).toEqual({ name, sharedFrom: 1 });
  await share(true);
  expect(await other.list()).toContain(id);
  expect(await owner.list()).toContain(id);
  const seen = await getEnvironment(environment.database.pool, other.spaceId, id);
  expect(seen).toMatchObject({ isShared: true, spaceId: owner.spaceId, readyVersion: 1 });

  const computer = await other.computer({ environmentId: id });
  expect(computer).toMatchObject({ homeSaveId: saveId, environmentVersionId: versionId, base: 'debian' });
  expect(await findSave(environment.database.pool, saveId)).toMatchObject({ isShared: 1, spaceId: owner.spaceId });
  expect(await other.make(id)).toMatchObject({ base: id });
  // Its editors could give it any name, so that others mean it without knowing.
  await expect(other.make(name)).rejects.toMatchObject({ code: 'ENVIRONMENT_BASE_UNKNOWN' });
  const given = await other.computer({});
  const { spaceId, actor } = other;
  await askForSystem(environment, { spaceId, computerId: given.id, environmentId: id, actor });
  expect(await getComputer(environment.database, spaceId, given.id)).toMatchObject({ environmentVersionId: versionId });

  const refused = { code: 'ENVIRONMENT_OF_OTHERS', kind: 'forbidden' };
  await expect(updateEnvironment(environment, { ...of, name: 'mine' })).rejects.toMatchObject(refused);
  const again = { ...of, versionId: newId('environmentVersion'), withoutCache: false };
  await expect(buildAgain(environment, again)).rejects.toMatchObject(refused);
  await expect(other.remove(id, true)).rejects.toMatchObject(refused);
});

test('What other spaces have of it goes on when it is shared no more, or deleted', async () => {
  const { owner, other, share, id, saveId, versionId, name } = await build();
  await share(true);
  const computer = await other.computer({ environmentId: id });
  const based = await other.make(id);
  await share(false);
  expect(await other.list()).not.toContain(id);
  await expect(other.computer({ environmentId: id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  const { spaceId, actor } = other;
  await query("UPDATE environment_versions SET status = 'failed' WHERE environment_id = ?", [based.id]);
  const again = {
    spaceId,
    environmentId: based.id,
    versionId: newId('environmentVersion'),
    withoutCache: false,
    actor,
  };
  await expect(buildAgain(environment, again)).rejects.toMatchObject({ code: 'ENVIRONMENT_BASE_UNKNOWN' });
  expect(await usedEnvironments(environment.database, [computer])).toEqual([
    { id, name, version: 1, isOutdated: false, isAvailable: false },
  ]);
  await expect(owner.remove(id)).rejects.toMatchObject({
    code: 'ENVIRONMENT_IN_USE',
    message: expect.stringContaining('Other spaces use it 2 times.'),
  });
  await owner.remove(id, true);
  expect(await letGo(environment.database, { id: versionId, spaceId: owner.spaceId })).toBe(false);
  await query('UPDATE home_saves SET loose_at = NOW(3) WHERE id = ?', [saveId]);
  expect(await collectSave(environment.database, saveId)).toBe(0);
  expect(await usedEnvironments(environment.database, [computer])).toMatchObject([{ name, isAvailable: false }]);
});

test('A space is not deleted while others need the system of an environment of it', async () => {
  const { owner, other, share, id } = await build();
  await share(true);
  const computer = await other.computer({ environmentId: id });
  const remove = () => owner.identity.spaces.remove(owner.spaceId, owner.actor.userId);
  await expect(remove()).rejects.toMatchObject({ code: 'ENVIRONMENTS_SHARED' });
  expect(await other.list()).toContain(id);
  await query('UPDATE computers SET deleted_at = NOW(3) WHERE id = ?', [computer.id]);
  await remove();
  expect(await other.list()).not.toContain(id);
});

test('A save of another space is opened only if it was shared', async () => {
  const { other, saveId, id, share } = await build();
  await share(true);
  const computer = await other.computer({ environmentId: id });
  const fill = jest.fn();
  const host = { hostId: 'hst_2', saves: { fill } } as never;
  const deps = { database: environment.database, host, storage: {} as never, sealedSaves: {} as never };
  const options = { isKnown: false, signal: new AbortController().signal };
  await fillHome(deps, computer, { limits: {} as never }, options);
  expect(fill).toHaveBeenCalledTimes(1);
  await query('UPDATE home_saves SET is_shared = 0 WHERE id = ?', [saveId]);
  await expect(fillHome(deps, computer, { limits: {} as never }, options)).rejects.toMatchObject({
    code: 'SAVE_BROKEN',
  });
  expect(fill).toHaveBeenCalledTimes(1);
});

test('Names of shared environments are unique, and a space means only its own by a name', async () => {
  const { owner, other, share, id, name } = await build();
  await share(true);
  const of = { spaceId: other.spaceId, createdBy: other.actor.userId };
  const own = await insertReadyEnvironment(environment.database, of, { name });
  await expect(shareEnvironment(environment.database, own.id, true)).rejects.toMatchObject({
    code: 'ENVIRONMENT_NAME_TAKEN',
  });
  expect(await other.make(name)).toMatchObject({ base: own.id });
  const second = await insertReadyEnvironment(environment.database, { ...of, spaceId: owner.spaceId });
  await shareEnvironment(environment.database, second.id, true);
  const rename = { spaceId: owner.spaceId, environmentId: second.id, name, actor: owner.actor };
  await expect(updateEnvironment(environment, rename)).rejects.toMatchObject({ code: 'ENVIRONMENT_NAME_TAKEN' });
  const all = await environmentsOfAll(environment.database, { limit: 1_000 });
  expect(all).toContainEqual(expect.objectContaining({ id, name, spaceId: owner.spaceId, readyVersion: 1 }));
  await expect(shareEnvironment(environment.database, 'env_unknown', true)).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
});

test('Deleting an environment names the computers and environments that use it', async () => {
  const { owner, id } = await build();
  const computer = await owner.computer({ environmentId: id, name: 'Mine' });
  const { name } = await owner.make(id);
  await expect(owner.remove(id)).rejects.toMatchObject({
    code: 'ENVIRONMENT_IN_USE',
    message: `The environment is in use. Computers have its system: Mine (${computer.id}). Environments have it as their base: ${name}. With force=true it is deleted, and computers keep their system.`,
  });
  await owner.remove(id, true);
  expect(await usedEnvironments(environment.database, [computer])).toMatchObject([{ id, isAvailable: false }]);
});

test('After it is shared no more, others see the name that it had', async () => {
  const { owner, other, share, id } = await build();
  await share(true);
  const computer = await other.computer({ environmentId: id });
  const { spaceId, actor } = owner;
  const rename = (name: string) => updateEnvironment(environment, { spaceId, environmentId: id, name, actor });
  const seen = async () => (await usedEnvironments(environment.database, [computer]))[0]?.name;
  const [shown, hidden] = [`${id}-shown`.toLowerCase(), `${id}-hidden`.toLowerCase()];
  await rename(shown);
  expect(await seen()).toBe(shown);
  await share(false);
  await rename(hidden);
  expect(await seen()).toBe(shown);
  const own = await owner.computer({ environmentId: id });
  expect(await usedEnvironments(environment.database, [own])).toMatchObject([{ name: hidden }]);
});

test('Others use the newest version that was ready when it was shared, and later ones', async () => {
  const { owner, other, share, id, versionId } = await build();
  const { database } = environment;
  const of = { spaceId: owner.spaceId, createdBy: owner.actor.userId };
  const add = async (number: number) => {
    const rows = environmentRows(of);
    const save = { ...saveRow({ spaceId: owner.spaceId, computerId: newId('computer') }), base: 'debian' };
    const version = { ...rows.environment_versions, environment_id: id, number, status: 'ready', save_id: save.id };
    await insertRows(database, { home_saves: save, environment_versions: version });
  };
  await add(2);
  expect(await share(true)).toMatchObject({ sharedFrom: 2 });
  await add(3);
  const get = ({ spaceId }: { spaceId: string }, number?: number) =>
    readyVersion(database.pool, { spaceId, environmentId: id, number });
  await expect(get(other, 1)).rejects.toMatchObject({ code: 'ENVIRONMENT_NOT_READY' });
  await expect(other.computer({ environmentId: id, environmentVersion: 1 })).rejects.toMatchObject({
    code: 'ENVIRONMENT_NOT_READY',
  });
  for (const number of [2, 3]) expect(await get(other, number)).toMatchObject({ number });
  expect(await get(other)).toMatchObject({ number: 3 });
  expect(await get(owner, 1)).toMatchObject({ id: versionId });
  const seen = async ({ spaceId }: { spaceId: string }) => {
    const { data } = await listVersions(database, { spaceId, environmentId: id }, { limit: 9 });
    return data.map(({ number }) => number).toSorted();
  };
  expect([await seen(owner), await seen(other)]).toEqual([
    [1, 2, 3],
    [2, 3],
  ]);
});

test('The operator takes it back from computers of others that were never started', async () => {
  const { owner, other, share, id, saveId, versionId } = await build();
  const { database } = environment;
  await share(true);
  const [unused, started] = [await other.computer({ environmentId: id }), await other.computer({ environmentId: id })];
  const own = await owner.computer({ environmentId: id });
  await query("UPDATE computers SET generation = 1, status = 'stopped', host_id = 'hst_1' WHERE id = ?", [started.id]);
  await owner.remove(id, true);
  expect(await takeBack(database, id)).toMatchObject({ computers: 1 });
  const now = (one: { id: string }, of: { spaceId: string }) => getComputer(database, of.spaceId, one.id);
  expect(await now(unused, other)).toMatchObject({ base: null, homeSaveId: null, environmentVersionId: null });
  expect(await now(started, other)).toMatchObject({ base: 'debian', homeSaveId: saveId });
  expect(await now(own, owner)).toMatchObject({ base: 'debian', homeSaveId: saveId });
  expect(await takeBack(database, id)).toMatchObject({ computers: 0 });
  await expect(takeBack(database, 'env_unknown')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await query('DELETE FROM computers WHERE id IN (?)', [[started.id, own.id]]);
  expect(await letGo(database, { id: versionId, spaceId: owner.spaceId })).toBe(true);
  expect(await collectSave(database, saveId)).toBe(1);
});

test('A space is deleted at once when others have deleted what they had of its environments', async () => {
  const { owner, other, share, id, saveId, versionId } = await build();
  const { database } = environment;
  await share(true);
  const computer = await other.computer({ environmentId: id });
  const of = { spaceId: other.spaceId, computerId: computer.id };
  const [first, last] = [saveRow(of), saveRow(of)].map((row) => ({ ...row, environment_version_id: versionId }));
  await insertRows(database, { home_saves: { ...first, parent_id: saveId } });
  await insertRows(database, { home_saves: { ...last, parent_id: first?.id } });
  await query('UPDATE computers SET home_save_id = ? WHERE id = ?', [last?.id, computer.id]);
  const remove = () => owner.identity.spaces.remove(owner.spaceId, owner.actor.userId);
  const refused = { code: 'ENVIRONMENTS_SHARED' };
  await expect(remove()).rejects.toMatchObject(refused);
  // A snapshot keeps its home, although its computer is gone.
  const snapshot = {
    id: newId('computerSnapshot'),
    space_id: other.spaceId,
    computer_id: computer.id,
    save_id: last?.id,
  };
  await insertRows(database, {
    computer_snapshots: { ...snapshot, name: 'Kept', created_by: other.actor.userId, created_at: new Date() },
  });
  await query('DELETE FROM computers WHERE id = ?', [computer.id]);
  await expect(remove()).rejects.toMatchObject(refused);
  await query('DELETE FROM computer_snapshots WHERE id = ?', [snapshot.id]);
  // What was built on it is kept for later builds only.
  const layer = { space_id: other.spaceId, digest: last?.id, save_id: last?.id, used_at: new Date() };
  await insertRows(database, { environment_layers: layer });
  await remove();
  expect((await query('SELECT digest FROM environment_layers WHERE space_id = ?', [other.spaceId]))[0]).toEqual([]);
  expect(await collectSave(database, last?.id ?? '')).toBe(2);
});
