import { newId } from '../../../base/ids.ts';
import { findComputer, getComputer } from '../../../models/computers/computer.ts';
import { reportHost } from '../../../models/computers/hosts.ts';
import { askToWake } from '../../../models/computers/wishes.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The choice of a host for a computer, and the answer when no host has room.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment({
    ATRIUM_COMPUTER_MEMORY_MIB: '1000',
    ATRIUM_COMPUTERS_OVERCOMMIT: '1.5',
  });
});
afterAll(() => environment.close());
beforeEach(async () => {
  await environment.database.pool.query('DELETE FROM computers');
  await environment.database.pool.query('DELETE FROM computer_hosts');
});

async function host(memoryMiB: number, maxRunning = 100): Promise<string> {
  const id = newId('computerHost');
  const report = { id, address: null, drivers: ['bubblewrap'] as const, cpuMilli: 2_000, memoryMiB, maxRunning };
  await reportHost(environment.database, report);
  return id;
}

/** A computer in its own space. */
async function computer(memoryMiB: number | null = null) {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const [rows] = await database.pool.query('SELECT id FROM computers WHERE space_id = ?', [space.id]);
  const { id = '' } = (rows as { id: string }[])[0] ?? {};
  await database.pool.query('UPDATE computers SET memory_mib = ? WHERE id = ?', [memoryMiB, id]);
  const request = { spaceId: space.id, computerId: id, actor: { userId: user.id, credentialId: null, address: null } };
  const wake = () =>
    askToWake(environment, request).then(
      ({ computer: { hostId } }) => hostId,
      (error: { code: string; retryAfterSeconds?: number }) => `${error.code} ${error.retryAfterSeconds}`,
    );
  return { id, wake, now: () => getComputer(database, space.id, id) };
}

async function stop(id: string): Promise<void> {
  await environment.database.pool.query("UPDATE computers SET status = 'stopped', wish = NULL WHERE id = ?", [id]);
}

const full = 'NO_HOST 30';

it('The memory of a host is promised only up to the overcommit factor', async () => {
  const only = await host(2_000);
  const [a, b, c, d] = [await computer(), await computer(), await computer(), await computer()];
  for (const { wake } of [a, b, c]) await expect(wake()).resolves.toBe(only);
  await expect(d.wake()).resolves.toBe(full);
  await expect(d.now()).resolves.toMatchObject({ status: 'created', hostId: null, wish: null });
  // A stopped computer takes no memory.
  await stop(b.id);
  await expect(d.wake()).resolves.toBe(only);
});

it('A computer whose home is on a full host starts neither there nor on another host', async () => {
  const [own] = [await host(1_000)];
  const [a, b] = [await computer(), await computer()];
  await expect(a.wake()).resolves.toBe(own);
  await stop(a.id);
  await expect(b.wake()).resolves.toBe(own);
  await host(8_000);
  await expect(a.wake()).resolves.toBe(full);
  await expect(a.now()).resolves.toMatchObject({ status: 'stopped', hostId: own });
  await stop(b.id);
  await expect(a.wake()).resolves.toBe(own);
});

it('A computer goes to a host that has room for its own memory limit', async () => {
  const [small, large] = [await host(1_000), await host(10_000)];
  await expect((await computer(12_000)).wake()).resolves.toBe(large);
  await expect((await computer(1_200)).wake()).resolves.toBe(small);
  await expect((await computer(2_000)).wake()).resolves.toBe(large);
  await expect((await computer(1_100)).wake()).resolves.toBe(full);
  await expect((await computer(16_000)).wake()).resolves.toBe(full);
});

it('A computer whose home btrfs saved goes to no host that cannot read that', async () => {
  const { database } = environment;
  const report = { address: null, drivers: ['bubblewrap'] as const, cpuMilli: 2_000, memoryMiB: 8_000, maxRunning: 9 };
  await reportHost(database, { ...report, id: newId('computerHost'), saveFormat: 'tar' });
  const { id, wake } = await computer();
  const saved = saveRow({ spaceId: (await findComputer(database, id))?.spaceId ?? '', computerId: id });
  await insertRows(database, { home_saves: saved });
  await database.pool.query('UPDATE computers SET home_save_id = ? WHERE id = ?', [saved.id, id]);
  await expect(wake()).resolves.toBe(full);
  await reportHost(database, { ...report, id: 'hst_btrfs', memoryMiB: 1_000, saveFormat: 'btrfs' });
  await expect(wake()).resolves.toBe('hst_btrfs');
});

it('Concurrent wakes in several spaces get no more than the free slots of a host', async () => {
  const only = await host(100_000, 3);
  const all = await Promise.all(Array.from({ length: 8 }, () => computer()));
  const answers = await Promise.all(all.map(({ wake }) => wake()));
  expect(answers.toSorted()).toEqual([...Array(5).fill(full), ...Array(3).fill(only)].toSorted());
});
