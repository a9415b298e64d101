import { newId } from '../../../base/ids.ts';
import { reportHost } from '../../../models/computers/hosts.ts';
import { askToWake } from '../../../models/computers/wishes.ts';
import { buildApi, type Client, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';

// What the computers of a space may have together. Computers and snapshots: computers.test.ts and snapshots.test.ts.

let api: TestApi;
beforeAll(async () => {
  api = await buildApi({
    ATRIUM_COMPUTER_DISK_MIB: '1000',
    ATRIUM_COMPUTERS_DISK_PER_SPACE_MIB: '5000',
    ATRIUM_COMPUTER_MEMORY_MIB: '1000',
    ATRIUM_COMPUTERS_MEMORY_PER_SPACE_MIB: '2500',
  });
  const host = { id: newId('computerHost'), address: null, drivers: ['bubblewrap'] as const };
  await reportHost(api.environment.database, { ...host, cpuMilli: 1_000, memoryMiB: 100_000, maxRunning: 100 });
});
afterAll(() => api.close());

interface Owner {
  as: Client;
  spaceId: string;
  path: string;
  userId: string;
}

async function owner(): Promise<Owner> {
  const { user, token } = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, user.id);
  return { as: api.as(token), spaceId: space.id, path: `/api/spaces/${space.id}/computers`, userId: user.id };
}

const change = (id: string, set: string) =>
  api.environment.database.pool.query(`UPDATE computers SET ${set} WHERE id = ?`, [id]);

const limits = { computers: 20, running: 5, memoryMiB: 2_500, diskMiB: 5_000, snapshots: 100 };

test('A space sees its limits and what it uses', async () => {
  const { as, path, spaceId } = await owner();
  const of = async () => (await as.get(`${path}/usage`)).body;
  const none = { computers: 1, running: 0, memoryMiB: 0, diskMiB: 1_000, snapshots: 0 };
  expect(await of()).toEqual({ used: none, limits });
  const { body } = await as.post(path, { memoryMiB: 500, diskMiB: 200 });
  await change(body.id as string, "status = 'paused'");
  const save = saveRow({ spaceId, computerId: body.id as string });
  const snapshot = { id: newId('computerSnapshot'), space_id: spaceId, computer_id: body.id, name: 'One' };
  await insertRows(api.environment.database, {
    home_saves: save,
    computer_snapshots: { ...snapshot, save_id: save.id, created_at: new Date() },
  });
  const some = { computers: 2, running: 1, memoryMiB: 500, diskMiB: 1_200, snapshots: 1 };
  expect(await of()).toEqual({ used: some, limits });

  // Copies of the snapshot have its computer's disk: all of them or none.
  const copies = `/api/spaces/${spaceId}/snapshots/${snapshot.id}/computers`;
  const refused = await as.post(copies, { count: 20 });
  expect([refused.status, refused.body]).toMatchObject([409, { code: 'TOO_MANY_COMPUTERS', limit: 20, used: 2 }]);
  await change(body.id as string, 'disk_mib = 2000');
  expect((await as.post(copies, { count: 2 })).body).toMatchObject({
    code: 'TOO_MUCH_DISK',
    limit: 5_000,
    used: 3_000,
  });
  expect((await as.post(copies, { count: 1 })).status).toBe(201);
});

test('The disks of the computers of a space are limited together', async () => {
  const { as, path } = await owner();
  const refused = await as.post(path, { diskMiB: 4_001 });
  expect([refused.status, refused.body]).toMatchObject([
    409,
    {
      code: 'TOO_MUCH_DISK',
      limit: 5_000,
      used: 1_000,
      detail:
        'The computers of a space have at most 5000 MiB of disk, and those of this one have 1000. Delete one or make its disk smaller.',
    },
  ]);
  const answers = await Promise.all([1, 2, 3].map(() => as.post(path, { diskMiB: 1_500 })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 409]);
  const one = `${path}/${answers.find(({ status }) => status === 201)?.body.id}`;
  expect((await as.patch(one, { diskMiB: 2_501 })).body).toMatchObject({ code: 'TOO_MUCH_DISK', used: 4_000 });
  expect((await as.patch(one, { diskMiB: 2_500 })).status).toBe(200);
  expect((await as.post(`${one}/fork`)).body).toMatchObject({ code: 'TOO_MUCH_DISK', used: 5_000 });
  // The operator has lowered the limit meanwhile.
  await change(one.split('/').at(-1) ?? '', 'disk_mib = 9000');
  expect((await as.patch(one, { diskMiB: 8_000 })).status).toBe(200);
  expect((await as.patch(one, { name: 'Large' })).status).toBe(200);
});

test('The memory of the computers of a space that run is limited together', async () => {
  const { as, path, spaceId, userId } = await owner();
  const make = async (memoryMiB: number) => (await as.post(path, { memoryMiB, diskMiB: 100 })).body.id as string;
  const wake = (computerId: string) =>
    askToWake(api.environment, { spaceId, computerId, actor: { userId, credentialId: null, address: null } }).then(
      () => 'woken',
      (error: { code: string; quota: unknown }) => [error.code, error.quota],
    );
  const [large, small, ...others] = [await make(2_000), await make(500), await make(500), await make(501)];
  expect(await wake(large)).toBe('woken');
  const full = ['TOO_MUCH_MEMORY', { limit: 2_500, used: 2_000 }];
  expect(await wake(others[1] ?? '')).toEqual(full);
  // Only one of two fits.
  expect((await Promise.all([wake(small), wake(others[0] ?? '')])).toSorted()).toEqual([
    ['TOO_MUCH_MEMORY', { limit: 2_500, used: 2_500 }],
    'woken',
  ]);
  expect((await as.patch(`${path}/${large}`, { memoryMiB: 2_001 })).body).toMatchObject({
    code: 'TOO_MUCH_MEMORY',
    limit: 2_500,
    used: 2_500,
  });
  expect((await as.patch(`${path}/${large}`, { memoryMiB: 1_500 })).status).toBe(200);
  expect(await wake(others[1] ?? '')).toEqual(full);
  // It does not run, so its memory does not count yet.
  expect((await as.patch(`${path}/${others[1]}`, { memoryMiB: 500 })).status).toBe(200);
  expect(await wake(others[1] ?? '')).toBe('woken');
});
