import type { ChatUser } from '../../builders/chat.ts';
import { computerOf, type TestComputer } from '../../builders/computer.ts';
import { buildHosts, type TestHost, type TestHosts } from '../../builders/hosts.ts';
import { waitFor } from '../../support/waitFor.ts';

// The worker is killed in the middle of snapshots and restores. They go on with the next one.

let atrium: TestHosts;
let user: ChatUser;
let host: TestHost;
beforeAll(async () => {
  atrium = await buildHosts({ ATRIUM_COMPUTER_SAVE_SECONDS: '0', ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '5' });
  user = await atrium.user();
  host = await atrium.addHost();
});
afterAll(() => atrium.close());

async function newComputer(): Promise<TestComputer> {
  const response = await user.fetch(`/api/spaces/${user.spaceId}/computers`, { method: 'POST', body: {} });
  return computerOf(user, ((await response.json()) as { id: string }).id);
}

async function count(sql: string, values: unknown[]): Promise<number> {
  return ((await atrium.environment.database.pool.query(sql, values))[0] as unknown[]).length;
}

/** Waits for the end of a request that may have answered with an operation. */
async function settled(response: Response): Promise<void> {
  if (response.status !== 202) return expect([200, 201]).toContain(response.status);
  const { id } = (await response.json()) as { id: string };
  const look = () => user.get<{ status: string; error?: object }>(`/api/operations/${id}`);
  await waitFor('the operation to end', async () => (await look()).status !== 'running');
  expect((await look()).error).toBeUndefined();
}

test('A snapshot whose worker is killed is made by the next worker', async () => {
  const computer = await newComputer();
  await computer.exec('head -c 60000000 /dev/urandom > big; echo first > file');
  const { stdout: sum } = await computer.exec('sha256sum big file');
  const taking = computer.fetch('/snapshots', { method: 'POST', body: { name: 'Kept' } });
  const pieces =
    'SELECT p.number FROM home_save_pieces p JOIN home_saves s ON s.id = p.save_id WHERE s.computer_id = ?';
  await waitFor('the first piece', async () => (await count(pieces, [computer.id])) > 0);
  await host.restart();
  await settled(await taking);
  const { data } = await computer.expect<{ data: { id: string; status: string }[] }>(200, 'GET', '/snapshots');
  expect(data).toMatchObject([{ status: 'kept' }]);
  await computer.exec('rm big; echo second > file');
  const copy = await newComputer();
  await settled(await copy.fetch('/restore', { method: 'POST', body: { snapshotId: data[0]?.id } }));
  expect((await copy.exec('sha256sum big file')).stdout).toBe(sum);
});

test('A restore whose worker is killed is done by the next worker, and no work is lost', async () => {
  const computer = await newComputer();
  await computer.exec('head -c 60000000 /dev/urandom > big; echo old > file');
  const { stdout: sum } = await computer.exec('sha256sum big file');
  await settled(await computer.fetch('/snapshots', { method: 'POST', body: { name: 'Old' } }));
  const snapshotId = (await computer.expect<{ data: { id: string }[] }>(200, 'GET', '/snapshots')).data[0]?.id;
  // Then the host has nothing of the snapshot.
  await computer.expect(204, 'DELETE', '');
  const other = await newComputer();
  await other.exec('echo mine > mine');
  const restoring = other.fetch('/restore', { method: 'POST', body: { snapshotId } });
  const named = "SELECT id FROM computer_snapshots WHERE computer_id = ? AND name = 'Before restoring Old'";
  await waitFor('the present home to be kept', async () => (await count(named, [other.id])) > 0);
  await host.restart();
  await settled(await restoring);
  expect((await other.exec('sha256sum big file; ls -I drive')).stdout).toBe(`${sum}big\nfile\n`);
  const { data } = await other.expect<{ data: { id: string; name: string }[] }>(200, 'GET', '/snapshots');
  expect(data).toMatchObject([{ name: 'Before restoring Old' }]);
  await settled(await other.fetch('/restore', { method: 'POST', body: { snapshotId: data[0]?.id } }));
  expect((await other.exec('ls -I drive')).stdout).toBe('mine\n');
});
