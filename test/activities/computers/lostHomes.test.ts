import { rmSync } from 'node:fs';
import { HomeSaves } from '../../../activities/computers/homeSaves.ts';
import { startOrdered } from '../../../activities/computers/startOrdered.ts';
import type { Services } from '../../../bin/support/services.ts';
import type { Host } from '../../../integrations/computers/host/host.ts';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { type Computer, findComputer } from '../../../models/computers/computer.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import { askToRecover } from '../../../models/computers/wishes.ts';
import { reportTestHost } from '../../builders/computerRows.ts';
import { buildHost, runOn } from '../../builders/host.ts';
import { buildHostServices } from '../../builders/hostServices.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

// Homes that are missing or damaged on one of both sides: on their host, or in the object store.

let worker: Awaited<ReturnType<typeof buildHostServices>>;
let services: Services;
beforeAll(async () => {
  worker = await buildHostServices();
  ({ services } = worker);
});
afterAll(() => worker.close());

const depsOn = (host: Host) => worker.depsOn(host);

const change = (set: string, values: unknown[]) =>
  services.database.pool.query(`UPDATE computers SET ${set} WHERE id = ?`, values);

async function get(id: string): Promise<Computer> {
  const computer = await findComputer(services.database, id);
  if (computer === undefined) throw new Error(`There is no computer ${id}.`);
  return computer;
}

/** A stopped computer on the host with a saved file. */
async function savedOn(host: Host): Promise<Computer> {
  const { identity, database } = services;
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const { id } = await defaultComputer(database, space.id);
  await change("status = 'running', generation = 1, host_id = ?", [host.hostId, id]);
  await startOrdered(depsOn(host), await get(id));
  await runOn(host.client(id), 'echo saved > file');
  await host.stop(id);
  await new HomeSaves(depsOn(host), new AbortController().signal).release(id, new AbortController().signal);
  await change("status = 'stopped'", [id]);
  return get(id);
}

/** Removes all that the object store has of the saves of a space. */
async function removePieces(spaceId: string): Promise<void> {
  const sql = 'SELECT object_key AS objectKey FROM home_save_pieces WHERE space_id = ?';
  const [pieces] = await services.database.pool.query(sql, [spaceId]);
  const keys = (pieces as { objectKey: string }[]).map(({ objectKey }) => objectKey);
  await services.storage.remove(keys, { alsoParts: false });
}

async function fileOn(host: Host, id: string): Promise<string> {
  await change("status = 'starting', generation = generation + 1, host_id = ?", [host.hostId, id]);
  await startOrdered(depsOn(host), await get(id));
  return (await runOn(host.client(id), 'cat file')).stdout;
}

test('A host that has lost a home makes it again from its last save, and saves no empty home', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id, homeSaveId } = await savedOn(host);
  const layout = hostLayout(built.dir);
  await host.saves.keepOnly(id, []);
  // As after the loss of the image: the host's records are elsewhere.
  rmSync(computerLayout(layout, id).home, { recursive: true });
  expect(await host.inspect(id)).toEqual({ state: 'absent' });
  expect(await fileOn(host, id)).toBe('saved\n');
  expect((await get(id)).homeSaveId).toBe(homeSaveId);
});

test('A home that cannot be opened is discarded if that is wanted, and the computer begins with an empty one', async () => {
  await using one = await buildHost();
  await using two = await buildHost();
  const { id, spaceId, homeSaveId } = await savedOn(one.host);
  await removePieces(spaceId);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await expect(fileOn(two.host, id)).rejects.toMatchObject({ code: 'SAVE_BROKEN' });
  }
  await reportTestHost(services, { id: two.host.hostId });
  await change("status = 'error', wish = NULL, error_code = 'SAVE_BROKEN'", [id]);
  const { createdBy } = await get(id);
  const request = { spaceId, computerId: id, actor: { userId: createdBy ?? '', credentialId: null, address: null } };
  await askToRecover(services, { ...request, discardHome: true });
  expect(await get(id)).toMatchObject({ homeSaveId: null, wish: 'wake', status: 'stopping' });
  expect(homeSaveId).not.toBeNull();
  expect(await fileOn(two.host, id)).toBe('');
  expect(two.host.saves.kept(id)).toEqual([]);
  // It is a computer like every other again.
  await runOn(two.host.client(id), 'echo new > file');
  await two.host.stop(id);
  await new HomeSaves(depsOn(two.host), new AbortController().signal).release(id, new AbortController().signal);
  expect((await get(id)).homeSaveId).toEqual(expect.any(String));
  expect(await fileOn(two.host, id)).toBe('new\n');
});

test('A host keeps its copy as a snapshot while the saved home cannot be opened', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id, spaceId } = await savedOn(host);
  await removePieces(spaceId);
  await change('host_id = NULL', [id]);
  await services.database.pool.query('INSERT INTO computer_remains (computer_id, host_id, since) VALUES (?)', [
    [id, host.hostId, new Date()],
  ]);
  await new HomeSaves(depsOn(host), new AbortController().signal).clearRemains();
  const [snapshots] = await services.database.pool.query(
    'SELECT s.parent_id AS parentId FROM computer_snapshots n JOIN home_saves s ON s.id = n.save_id WHERE n.computer_id = ?',
    [id],
  );
  expect(snapshots).toEqual([{ parentId: null }]);
  expect(await host.inspect(id)).toEqual({ state: 'absent' });
});
