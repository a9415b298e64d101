import { rmSync } from 'node:fs';
import { HomeSaves } from '../../../activities/computers/homeSaves.ts';
import { startOrdered } from '../../../activities/computers/startOrdered.ts';
import type { Services } from '../../../bin/support/services.ts';
import type { Host } from '../../../integrations/computers/host/host.ts';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { type Computer, findComputer } from '../../../models/computers/computer.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
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

test('A host keeps its copy as a snapshot while the saved home cannot be opened', async () => {
  await using built = await buildHost();
  const { host } = built;
  const { id, spaceId } = await savedOn(host);
  const [pieces] = await services.database.pool.query(
    'SELECT object_key AS objectKey FROM home_save_pieces WHERE space_id = ?',
    [spaceId],
  );
  await services.storage.remove(
    (pieces as { objectKey: string }[]).map(({ objectKey }) => objectKey),
    { alsoParts: false },
  );
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
