import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ChatUser } from '../../builders/chat.ts';
import { computerOf, type TestComputer } from '../../builders/computer.ts';
import { buildHosts, look, newComputer, saved, type TestHost, type TestHosts } from '../../builders/hosts.ts';
import { runAtrium } from '../../support/atrium.ts';
import { waitFor } from '../../support/waitFor.ts';

// Homes that outlive the machine that they are on: several hosts on this machine, each with a folder of its own.

let atrium: TestHosts;
let user: ChatUser;
beforeAll(async () => {
  atrium = await buildHosts();
  user = await atrium.user();
});
afterAll(() => atrium.close());

const run = (...args: string[]) => runAtrium(['host', ...args], atrium.environment.environment);

async function select<Row>(sql: string, values: unknown[]): Promise<Row[]> {
  return (await atrium.environment.database.pool.query(sql, values))[0] as Row[];
}

async function runsOn(host: TestHost, computer: TestComputer): Promise<void> {
  await waitFor('the computer to run on the other host', async () => {
    return (await atrium.hostOf(computer)) === host && (await look(computer)).status === 'running';
  });
}

test('A computer whose machine is gone comes up on another one with its files, and nobody else sees them', async () => {
  const first = await atrium.addHost();
  const computer = await newComputer(user);
  await computer.exec('mkdir work; echo needle > work/file; ln -s work/file link; head -c 40000000 /dev/urandom > big');
  const { stdout: sum } = await computer.exec('sha256sum big');
  await saved(computer);
  await computer.exec('echo more >> work/file');
  await saved(computer);
  expect(await atrium.hostOf(computer)).toBe(first);
  const second = await atrium.addHost();
  await first.destroy();
  await runsOn(second, computer);
  expect((await computer.exec('cat link; sha256sum big')).stdout).toBe(`needle\nmore\n${sum}`);
  expect(await look(computer)).toMatchObject({ generation: 2, homeSaveError: null });

  const stranger = await atrium.user();
  const theirs = computerOf(stranger, computer.id, user.spaceId);
  for (const path of ['', '/metrics']) expect((await theirs.fetch(path)).status).toBe(404);
  expect((await (await newComputer(stranger)).exec('ls -I drive; cat work/file')).stdout).toBe('');
});

test('A frozen host that comes back saves nothing into the computer, and its unsaved work becomes a snapshot', async () => {
  const computer = await newComputer(user);
  const count = 'n=0; while true; do n=$((n+1)); echo $n > count.new; mv count.new count; sleep 0.1; done';
  await computer.expect(201, 'POST', '/processes', { command: count });
  await saved(computer);
  const host = await atrium.hostOf(computer);
  if (host === undefined) throw new Error('The computer is on no host.');
  const other = await atrium.addHost();
  await host.worker.kill('SIGSTOP');
  try {
    await runsOn(other, computer);
  } finally {
    await host.worker.kill('SIGCONT');
  }
  const { stdout: atHead } = await computer.exec('cat count; rm count; echo mine > mine');
  const snapshot = await waitFor('the snapshot', async () => {
    const sql = 'SELECT name, save_id AS saveId FROM computer_snapshots WHERE computer_id = ?';
    return (await select<{ name: string; saveId: string }>(sql, [computer.id]))[0];
  });
  expect(snapshot.name).toContain(`Work on ${host.id} that was not saved before `);
  await waitFor('the old home to be removed', () => !existsSync(join(host.dir, computer.id)));
  expect(await atrium.hostOf(computer)).toBe(other);
  expect((await computer.exec('cat mine; ls -I drive')).stdout).toBe('mine\nmine\n');

  // A computer with the home of the snapshot has what the frozen host had.
  const copy = await newComputer(user);
  await select('UPDATE computers SET home_save_id = ?, home_saved_at = NOW(3) WHERE id = ?', [
    snapshot.saveId,
    copy.id,
  ]);
  const { stdout: atSnapshot } = await copy.exec('cat count');
  expect(Number(atSnapshot)).toBeGreaterThan(Number(atHead));
});

test('A drain moves the computers of a host, running and stopped ones', async () => {
  const others = [...atrium.hosts()];
  const from = await atrium.addHost();
  for (const { id } of others) await run('cordon', id);
  const [running, stopped] = [await newComputer(user), await newComputer(user)];
  for (const computer of [running, stopped]) {
    await computer.exec(`echo ${computer.id} > file`);
    expect(await atrium.hostOf(computer)).toBe(from);
  }
  await stopped.expect(200, 'POST', '/stop');
  for (const { id } of others) await run('uncordon', id);
  const drained = await run('drain', from.id, '--wait');
  expect(drained).toMatchObject({ code: 0, stdout: `No computer is on ${from.id} any more.\n` });
  await waitFor('the running one to run', async () => (await look(running)).status === 'running');
  expect(await look(stopped)).toMatchObject({ status: 'stopped' });
  for (const computer of [running, stopped]) {
    expect((await computer.exec('cat file')).stdout).toBe(`${computer.id}\n`);
    expect(others).toContain(await atrium.hostOf(computer));
    await waitFor('the old home to be removed', () => !existsSync(join(from.dir, computer.id)));
  }
  expect(JSON.parse((await run('list', '--json')).stdout)).toContainEqual(
    expect.objectContaining({ id: from.id, isCordoned: true, computers: 0 }),
  );
});

test('A full quota is shown, and the home is saved once there is room', async () => {
  const computer = await newComputer(user);
  await saved(computer);
  const { quotaBytes } = atrium.environment.config.drive;
  const sql = 'UPDATE drives SET used_bytes = used_bytes + ? - ? WHERE space_id = ?';
  await select(sql, [quotaBytes, 0, user.spaceId]);
  await computer.exec('echo more > file');
  await waitFor('the failure', async () => (await look(computer)).homeSaveError?.code === 'QUOTA_EXCEEDED');
  await select(sql, [0, quotaBytes, user.spaceId]);
  await waitFor('the home to be saved', async () => (await look(computer)).homeSaveError === null);
});

test('Deleted computers leave no save and no object', async () => {
  const { spaceId } = user;
  const { data } = await user.get<{ data: { id: string }[] }>(`/api/spaces/${spaceId}/computers`);
  await select('DELETE FROM computer_snapshots WHERE space_id = ?', [spaceId]);
  await select('UPDATE home_saves SET loose_at = NOW(3) WHERE space_id = ?', [spaceId]);
  for (const { id } of data) await user.fetch(`/api/spaces/${spaceId}/computers/${id}`, { method: 'DELETE' });
  const left =
    'SELECT id FROM home_saves WHERE space_id = ? UNION SELECT object_key FROM drive_objects WHERE space_id = ?';
  await waitFor('the saves to be collected', async () => (await select(left, [spaceId, spaceId])).length === 0);
  const [drive] = await select<{ used: number }>('SELECT used_bytes AS used FROM drives WHERE space_id = ?', [spaceId]);
  expect(drive?.used).toBe(0);
});
