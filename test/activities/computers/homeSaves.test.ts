import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { HomeSaves } from '../../../activities/computers/homeSaves.ts';
import { startOrdered } from '../../../activities/computers/startOrdered.ts';
import { DomainError } from '../../../base/errors.ts';
import type { Services } from '../../../bin/support/services.ts';
import type { Host } from '../../../integrations/computers/host/host.ts';
import { HostError } from '../../../integrations/computers/host/hostErrors.ts';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { type Computer, findComputer } from '../../../models/computers/computer.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import { insertEnvironment } from '../../builders/environmentRows.ts';
import { buildHost, runOn } from '../../builders/host.ts';
import { buildHostServices } from '../../builders/hostServices.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';
import { waitFor } from '../../support/waitFor.ts';

// Saves that are cut off, on real hosts with the real store.

let worker: Awaited<ReturnType<typeof buildHostServices>>;
let services: Services;
beforeAll(async () => {
  worker = await buildHostServices();
  ({ services } = worker);
});
afterAll(() => worker.close());

const depsOn = (host: Host) => worker.depsOn(host);

/** The default computer of a new space, which runs on the host. */
async function startOn(host: Host): Promise<Computer> {
  const { identity, database } = services;
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const { id } = await defaultComputer(database, space.id);
  const sql = "UPDATE computers SET status = 'running', generation = 1, host_id = ? WHERE id = ?";
  await database.pool.query(sql, [host.hostId, id]);
  const computer = await get(id);
  await startOrdered(depsOn(host), computer);
  return computer;
}

async function get(id: string): Promise<Computer> {
  const computer = await findComputer(services.database, id);
  if (computer === undefined) throw new Error(`There is no computer ${id}.`);
  return computer;
}

async function rowsOf(table: 'home_save_pieces' | 'drive_objects', spaceId: string): Promise<object[]> {
  const sql = `SELECT object_key AS \`key\` FROM ${table} WHERE space_id = ? ORDER BY object_key`;
  return (await services.database.pool.query(sql, [spaceId]))[0] as object[];
}

test('A save that was cut off goes on behind its last piece, and the home is made from it on another host', async () => {
  await using first = await buildHost();
  await using second = await buildHost();
  const { id, spaceId } = await startOn(first.host);
  await runOn(first.host.client(id), 'head -c 60000000 /dev/urandom > big');
  const { stdout: sum } = await runOn(first.host.client(id), 'sha256sum big');

  const stopping = new AbortController();
  const cut = new HomeSaves(depsOn(first.host), stopping.signal);
  const saving = cut.release(id, new AbortController().signal);
  await waitFor('the first piece', async () => (await rowsOf('home_save_pieces', spaceId)).length > 0);
  stopping.abort(new Error('The process of the host ends.'));
  await expect(saving).rejects.toThrow();
  const before = await rowsOf('home_save_pieces', spaceId);
  expect((await get(id)).homeSaveId).toBeNull();

  await new HomeSaves(depsOn(first.host), new AbortController().signal).release(id, new AbortController().signal);
  const after = await rowsOf('home_save_pieces', spaceId);
  expect(after).toEqual(expect.arrayContaining(before));
  // No piece was sent twice.
  expect(await rowsOf('drive_objects', spaceId)).toEqual(after);
  const saved = await get(id);
  expect(saved).toMatchObject({ homeSaveId: expect.any(String), homeSavedAt: expect.any(Date), homeSaveFailed: null });

  await startOrdered(depsOn(second.host), saved);
  expect((await runOn(second.host.client(id), 'sha256sum big')).stdout).toBe(sum);
});

test('A save whose host has lost the computer is dropped, with its objects', async () => {
  await using first = await buildHost();
  const { id, spaceId } = await startOn(first.host);
  await runOn(first.host.client(id), 'echo x > file');
  // As when another host takes over while this one is frozen.
  const { saves } = first.host;
  const take = saves.take.bind(saves);
  jest.spyOn(saves, 'take').mockImplementation(async (...args) => {
    const taken = await take(...args);
    await services.database.pool.query("UPDATE computers SET host_id = 'hst_other' WHERE id = ?", [id]);
    return taken;
  });
  const homeSaves = new HomeSaves(depsOn(first.host), new AbortController().signal);
  await homeSaves.begin();
  await waitFor('the save to be taken', async () => (await get(id)).hostId === 'hst_other');
  await waitFor('the save to be dropped', async () => {
    const left = 'SELECT id FROM home_saves WHERE space_id = ?';
    const [rows] = await services.database.pool.query(left, [spaceId]);
    return (rows as object[]).length === 0 && first.host.saves.kept(id).length === 0;
  });
  expect(await get(id)).toMatchObject({ homeSaveId: null });
  const [objects] = await services.database.pool.query(
    "SELECT object_key FROM drive_objects WHERE space_id = ? AND state <> 'doomed'",
    [spaceId],
  );
  expect(objects).toEqual([]);
});

const forEver = new AbortController().signal;

const savesOn = (host: Host) => new HomeSaves(depsOn(host), forEver);

async function unfinishedIn(spaceId: string): Promise<object[]> {
  const sql = 'SELECT id FROM home_saves WHERE space_id = ? AND pieces IS NULL';
  return (await services.database.pool.query(sql, [spaceId]))[0] as object[];
}

/** Leaves a space that has saved something so much room. */
async function leaveRoom(spaceId: string, bytes: number): Promise<void> {
  const { quotaBytes } = services.config.drive;
  await services.database.pool.query('UPDATE drives SET used_bytes = ? WHERE space_id = ?', [
    quotaBytes - bytes,
    spaceId,
  ]);
}

async function headOf(id: string): Promise<{ parentId: string | null }> {
  const sql =
    'SELECT s.parent_id AS parentId FROM home_saves s JOIN computers c ON c.home_save_id = s.id WHERE c.id = ?';
  const [rows] = await services.database.pool.query(sql, [id]);
  const [head] = rows as { parentId: string | null }[];
  if (head === undefined) throw new Error(`The computer ${id} has no head.`);
  return head;
}

test('A home that exceeds the quota is saved once its files are deleted', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id, spaceId } = await startOn(host);
  const homeSaves = savesOn(host);
  await homeSaves.release(id, forEver);
  const kept = host.saves.kept(id);
  await leaveRoom(spaceId, 1_000_000);
  await runOn(host.client(id), 'head -c 5000000 /dev/urandom > big');
  await expect(homeSaves.release(id, forEver)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  // The home still looks unsaved.
  expect(host.saves.kept(id)).toEqual(kept);
  expect(await host.saves.changed()).toEqual([id]);
  expect(await unfinishedIn(spaceId)).toEqual([]);
  await runOn(host.client(id), 'rm big');
  await homeSaves.release(id, forEver);
  expect(await get(id)).toMatchObject({ homeSaveFailed: null });
});

test('A home with a path that is too long says so, and is saved once the path is shorter', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id } = await startOn(host);
  const homeSaves = savesOn(host);
  const name = 'n'.repeat(200);
  const folders = Array(11).fill(name).join('/');
  const deep = `mkdir -p one/${folders} two/${folders} && mv two one/${folders}`;
  expect(await runOn(host.client(id), deep)).toMatchObject({ exitCode: 0 });
  await expect(homeSaves.release(id, forEver)).rejects.toMatchObject({ code: 'PATH_TOO_LONG' });
  expect(await get(id)).toMatchObject({ homeSaveFailed: 'PATH_TOO_LONG', homeSaveId: null });
  await runOn(host.client(id), 'rm -r one');
  await homeSaves.release(id, forEver);
  expect(await get(id)).toMatchObject({ homeSaveFailed: null, homeSaveId: expect.any(String) });
});

test('A home that was too large for a save is saved once it is smaller', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id } = await startOn(host);
  const tooLarge = Object.assign(new Error('far too many bytes'), { name: 'HostError', code: 'SAVE_TOO_LARGE' });
  const read = host.saves.read.bind(host.saves);
  const reads: string[] = [];
  jest.spyOn(host.saves, 'read').mockImplementation((computerId, saveId, ...others) => {
    reads.push(saveId);
    // As that snapshot always is.
    if (saveId === reads[0]) throw tooLarge;
    return read(computerId, saveId, ...others);
  });
  const homeSaves = savesOn(host);
  await expect(homeSaves.release(id, forEver)).rejects.toThrow(tooLarge);
  await homeSaves.release(id, forEver);
  expect(await get(id)).toMatchObject({ homeSaveFailed: null, homeSaveId: expect.any(String) });
});

test('On a full disk, the snapshots that hold deleted files go, and the next save is the whole home', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id } = await startOn(host);
  const homeSaves = savesOn(host);
  await homeSaves.release(id, forEver);
  const { homeSaveId } = await get(id);
  await runOn(host.client(id), 'echo more > more');
  const full = new HostError('DISK_FULL', 'as where btrfs has no room for another volume');
  jest.spyOn(host.saves, 'take').mockRejectedValueOnce(full);
  await expect(homeSaves.release(id, forEver)).rejects.toThrow(full);
  expect(host.saves.kept(id)).toEqual([]);
  expect(await get(id)).toMatchObject({ homeSaveId, homeSaveFailed: 'DISK_FULL' });
  // The same while the store is away, although the home is kept then.
  jest.spyOn(host.saves, 'isFull').mockReturnValueOnce(true);
  const away = new DomainError('unavailable', 'STORAGE_UNAVAILABLE', 'The store is away.');
  const writing = jest.spyOn(services.storage, 'write').mockRejectedValueOnce(away);
  await expect(homeSaves.release(id, forEver)).rejects.toThrow(away);
  writing.mockRestore();
  expect(host.saves.kept(id)).toEqual([]);
  await homeSaves.release(id, forEver);
  expect((await get(id)).homeSaveId).not.toBe(homeSaveId);
  expect(await headOf(id)).toEqual({ parentId: null });
});

test('A save goes on with its snapshot after the store was away', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id, spaceId } = await startOn(host);
  await runOn(host.client(id), 'head -c 20000000 /dev/urandom > big');
  const away = new DomainError('unavailable', 'STORAGE_UNAVAILABLE', 'The store is away.');
  const write = services.storage.write.bind(services.storage);
  const writing = jest.spyOn(services.storage, 'write');
  writing.mockImplementationOnce(write).mockRejectedValueOnce(away);
  const homeSaves = savesOn(host);
  await expect(homeSaves.release(id, forEver)).rejects.toThrow(away);
  const kept = host.saves.kept(id);
  expect(kept).toHaveLength(1);
  expect(await rowsOf('home_save_pieces', spaceId)).toHaveLength(1);
  await homeSaves.release(id, forEver);
  expect(await get(id)).toMatchObject({ homeSaveId: kept[0] });
});

test('Changes are saved while the quota has room for them, but not for the whole home that is due', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id, spaceId } = await startOn(host);
  const homeSaves = savesOn(host);
  for (let written = 0; written < 2; written++) {
    await runOn(host.client(id), 'head -c 3000000 /dev/urandom > file');
    await homeSaves.release(id, forEver);
  }
  const { homeSaveId } = await get(id);
  await leaveRoom(spaceId, 1_000_000);
  await runOn(host.client(id), 'echo small > small');
  await expect(homeSaves.release(id, forEver)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  await homeSaves.release(id, forEver);
  expect(await headOf(id)).toEqual({ parentId: homeSaveId });
});

test('Without btrfs, changes are saved although the clock was set back', async () => {
  await using built = await buildHost({ drivers: ['bubblewrap'], without: ['cgroups', 'image'] });
  const { host, dir } = built;
  const { id } = await startOn(host);
  const homeSaves = savesOn(host);
  await homeSaves.release(id, forEver);
  const { homeSaveId } = await get(id);
  const folder = join(hostLayout(dir).saves, id, homeSaveId ?? '');
  await runOn(host.client(id), 'echo one > one');
  // The home was saved by a clock that was an hour fast.
  const inAnHour = Date.now() / 1_000 + 3_600;
  utimesSync(folder, inAnHour, inAnHour);
  expect(await host.saves.changed()).toEqual([id]);
  // The clock has passed that time since, so the change looks saved.
  const now = Date.now() / 1_000;
  utimesSync(folder, now, now);
  expect(await host.saves.changed()).toEqual([]);
  await homeSaves.release(id, forEver);
  expect((await get(id)).homeSaveId).not.toBe(homeSaveId);
  // An earlier save that stays, since a snapshot names it, hides nothing and is not saved again and again.
  await host.saves.take(id, 'hsv_named');
  utimesSync(join(hostLayout(dir).saves, id, 'hsv_named'), inAnHour, inAnHour);
  await host.saves.take(id, 'hsv_next');
  expect(await host.saves.changed()).toEqual([]);
  await runOn(host.client(id), 'echo two > two');
  expect(await host.saves.changed()).toEqual([id]);
});

test('What was built on a host stays there without its computer, until it is offered no more', async () => {
  await using only = await buildHost();
  const { pool } = services.database;
  const { id, spaceId } = await startOn(only.host);
  await runOn(only.host.client(id), 'echo x > file');
  const homeSaves = savesOn(only.host);
  await homeSaves.release(id, forEver);
  const { homeSaveId } = await get(id);
  await insertEnvironment(services.database, { spaceId, createdBy: 'usr_1' });
  const change = (what: string) => pool.query(`UPDATE environment_versions SET ${what} WHERE space_id = '${spaceId}'`);
  await change(`save_id = '${homeSaveId}', status = 'ready'`);
  await homeSaves.keepVersions();
  await only.host.destroy(id);
  expect(readdirSync(hostLayout(only.dir).snapshots)).toEqual([homeSaveId]);
  await change('let_go_at = NOW(3)');
  await homeSaves.keepVersions();
  expect(readdirSync(hostLayout(only.dir).snapshots)).toEqual([]);
});
