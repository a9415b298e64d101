import type { HostDeps } from '../../../activities/computers/deps.ts';
import { HomeSaves } from '../../../activities/computers/homeSaves.ts';
import { startOrdered } from '../../../activities/computers/startOrdered.ts';
import { createServices, type Services } from '../../../bin/support/services.ts';
import { type Computer, findComputer } from '../../../models/computers/computer.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { createLauncher } from '../../../temporal/launcher.ts';
import { buildHost, runOn } from '../../builders/host.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { waitFor } from '../../support/waitFor.ts';

// Saves that are cut off, on real hosts with the real store.

let environment: TestEnvironment;
let services: Services;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const { config, database } = environment;
  const logger = createLogger({ level: 'silent' });
  services = await createServices({ config, logger, readers: false, remoteWriters: false, database });
});
afterAll(async () => {
  await services.close();
  await environment.close();
});

type Host = Awaited<ReturnType<typeof buildHost>>['host'];

function depsOn(host: Host): HostDeps {
  const { config, logger, temporal } = services;
  const workflows = createLauncher({ client: temporal.client, config, logger, sharesWorkersConnection: false });
  return { ...services, workflows, host, environment: {} };
}

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
