import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { computerOf, type TestComputer } from '../../builders/computer.ts';
import { buildHosts, type TestHost, type TestHosts } from '../../builders/hosts.ts';
import { runAtrium } from '../../support/atrium.ts';
import { waitFor } from '../../support/waitFor.ts';

const most = 25;

let atrium: TestHosts;
let user: ChatUser;
let host: TestHost;
beforeAll(async () => {
  // The loop saves nothing, so that all saves are those of snapshots and restores.
  atrium = await buildHosts({ ATRIUM_COMPUTER_SAVE_SECONDS: '0', ATRIUM_COMPUTER_SNAPSHOTS_PER_SPACE: String(most) });
  user = await atrium.user();
  host = await atrium.addHost();
});
afterAll(() => atrium.close());

interface Snapshot {
  id: string;
  computerId: string;
  name: string;
  status: string;
  error: { code: string } | null;
  takenAt: string | null;
  sizeBytes: number | null;
  createdBy: string | null;
}

interface Seen {
  id: string;
  name: string;
  status: string;
  generation: number;
  homeSavedAt: string | null;
}

const run = (...args: string[]) => runAtrium(['host', ...args], atrium.environment.environment);
const space = (of = user) => `/api/spaces/${of.spaceId}`;

async function send<T>(status: number, method: string, path: string, body?: unknown, headers = {}): Promise<T> {
  const response = await user.fetch(space() + path, { method, body, headers });
  const text = await response.text();
  if (response.status !== status) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

async function newComputer(body: object = {}): Promise<TestComputer> {
  return computerOf(user, (await send<{ id: string }>(201, 'POST', '/computers', body)).id);
}

const take = (computer: TestComputer, name?: string) =>
  computer.expect<Snapshot>(201, 'POST', '/snapshots', name === undefined ? undefined : { name });
const snapshotsOf = async (computer: TestComputer) =>
  (await computer.expect<{ data: Snapshot[] }>(200, 'GET', '/snapshots')).data;
const look = (computer: TestComputer) => computer.expect<Seen>(200, 'GET', '');
const restore = (computer: TestComputer, { id }: Snapshot) =>
  computer.expect<Seen>(200, 'POST', '/restore', { snapshotId: id });

async function select<Row>(sql: string, values: unknown[]): Promise<Row[]> {
  return (await atrium.environment.database.pool.query(sql, values))[0] as Row[];
}

test('A snapshot is taken while programs write, and has what was written before', async () => {
  const computer = await newComputer();
  const count = 'n=0; while true; do n=$((n+1)); echo $n > count.new; mv count.new count; sleep 0.01; done';
  await computer.expect(201, 'POST', '/processes', { command: count });
  await computer.exec('until [ -e count ]; do sleep 0.01; done; echo before > file; cp count seen');
  const { stdout: seen } = await computer.exec('cat seen');
  const snapshot = await take(computer, 'While it writes');
  expect(snapshot).toMatchObject({
    computerId: computer.id,
    name: 'While it writes',
    status: 'kept',
    error: null,
    takenAt: expect.any(String),
    sizeBytes: expect.any(Number),
  });
  expect(snapshot.createdBy).not.toBeNull();
  expect((await look(computer)).status).toBe('running');
  await computer.exec('echo after > file');
  const copy = await newComputer({ fromSnapshotId: snapshot.id, name: 'Copy' });
  expect(await copy.expect(200, 'GET', '')).toMatchObject({ forkedFrom: computer.id });
  const { stdout } = await copy.exec('cat file; cat count');
  const [file, at] = stdout.split('\n');
  expect(file).toBe('before');
  expect(Number(at)).toBeGreaterThanOrEqual(Number(seen));
  expect((await computer.exec('cat file')).stdout).toBe('after\n');
});

test('Snapshots are listed and shown, and the same key makes one', async () => {
  const computer = await newComputer();
  await computer.exec('echo one > file');
  const first = await take(computer);
  expect(first.name).toMatch(/^Snapshot of \d{4}-\d\d-\d\d \d\d:\d\d$/);
  const key = { 'idempotency-key': randomUUID() };
  const path = `/computers/${computer.id}/snapshots`;
  const made = await send<Snapshot>(201, 'POST', path, { name: 'Two' }, key);
  expect(await send<Snapshot>(201, 'POST', path, { name: 'Two' }, key)).toEqual(made);
  expect((await snapshotsOf(computer)).map(({ id }) => id)).toEqual([made.id, first.id]);
  expect(await send(200, 'GET', `/snapshots/${made.id}`)).toEqual(made);
  const all = await send<{ data: Snapshot[] }>(200, 'GET', '/snapshots');
  expect(all.data.slice(0, 2).map(({ id }) => id)).toEqual([made.id, first.id]);
  // Nothing has changed, so both name one save.
  const saves = await select('SELECT DISTINCT save_id FROM computer_snapshots WHERE computer_id = ?', [computer.id]);
  expect(saves).toHaveLength(1);
});

test('A running computer is restored: it starts again, and its later work becomes a snapshot', async () => {
  const computer = await newComputer();
  await computer.exec('mkdir work; echo old > work/file; head -c 3000000 /dev/urandom > big');
  const { stdout: sum } = await computer.exec('sha256sum big');
  const snapshot = await take(computer, 'Old');
  await computer.exec('echo new > work/file; echo more > later; rm big');
  const { generation } = await look(computer);
  await restore(computer, snapshot);
  await waitFor('the computer to run again', async () => (await look(computer)).status === 'running');
  expect((await look(computer)).generation).toBe(generation + 1);
  expect((await computer.exec('cat work/file; ls -I drive; sha256sum big')).stdout).toBe(`old\nbig\nwork\n${sum}`);
  const [before] = await snapshotsOf(computer);
  expect(before).toMatchObject({ name: 'Before restoring Old', status: 'kept', createdBy: null });

  // The work after a restore is saved again, and nothing of the two homes mixes.
  await computer.exec('echo third > work/file');
  const third = await take(computer, 'Third');
  await restore(computer, before as Snapshot);
  expect((await computer.exec('cat work/file later; ls -I drive')).stdout).toBe('new\nmore\nlater\nwork\n');
  await restore(computer, third);
  expect((await computer.exec('cat work/file; ls -I drive')).stdout).toBe('third\nbig\nwork\n');
});

test('A snapshot that its host has is restored without the object store, also on another computer', async () => {
  const computer = await newComputer();
  await computer.exec('echo old > file');
  const snapshot = await take(computer);
  await computer.exec('echo new > file');
  const away = `UPDATE home_save_pieces SET object_key = CONCAT('away-', number)
    WHERE save_id = (SELECT save_id FROM computer_snapshots WHERE id = ?)`;
  await select(away, [snapshot.id]);
  await restore(computer, snapshot);
  expect((await computer.exec('cat file')).stdout).toBe('old\n');
  const copy = await newComputer({ fromSnapshotId: snapshot.id });
  expect((await copy.exec('cat file')).stdout).toBe('old\n');
  const other = await newComputer();
  await other.exec('echo mine > file');
  await restore(other, snapshot);
  expect((await other.exec('cat file')).stdout).toBe('old\n');
  // Without the host's snapshot, it needs the store.
  const [save] = await select<{ id: string }>('SELECT save_id AS id FROM computer_snapshots WHERE id = ?', [
    snapshot.id,
  ]);
  for (const each of [computer, copy, other]) await each.expect(204, 'DELETE', '');
  await waitFor('the snapshot to go', () => !existsSync(join(hostLayout(host.dir).snapshots, save?.id ?? '')));
  const last = await newComputer();
  await last.exec('echo mine > file');
  const failed = { code: expect.any(String), status: expect.any(Number) };
  const response = await last.fetch('/restore', { method: 'POST', body: { snapshotId: snapshot.id } });
  expect(await response.json()).toMatchObject(failed);
  expect((await last.exec('cat file')).stdout).toBe('mine\n');
});

test('A stopped computer is restored and stays stopped, also from the snapshot of another one', async () => {
  const [from, to] = [await newComputer(), await newComputer()];
  await from.exec('echo theirs > file');
  const snapshot = await take(from, 'Theirs');
  await to.exec('echo mine > file');
  await to.expect(200, 'POST', '/stop');
  expect(await restore(to, snapshot)).toMatchObject({ status: 'stopped' });
  expect((await to.exec('cat file')).stdout).toBe('theirs\n');
  expect((await from.exec('cat file')).stdout).toBe('theirs\n');
  const [before] = await snapshotsOf(to);
  await restore(to, before as Snapshot);
  expect((await to.exec('cat file')).stdout).toBe('mine\n');

  // One that was never used has no home to keep.
  const unused = await newComputer();
  expect(await restore(unused, snapshot)).toMatchObject({ status: 'created' });
  expect(await snapshotsOf(unused)).toEqual([]);
  expect((await unused.exec('cat file')).stdout).toBe('theirs\n');
});

async function hostOf({ id }: TestComputer): Promise<TestHost | undefined> {
  const [row] = await select<{ hostId: string | null }>('SELECT host_id AS hostId FROM computers WHERE id = ?', [id]);
  return atrium.hosts().find((one) => one.id === row?.hostId);
}

const countOf = async () => (await send<{ data: object[] }>(200, 'GET', '/computers?limit=200')).data.length;

test('Several computers are made from a snapshot on another host, all or none, once for a key', async () => {
  const computer = await newComputer({ env: { COLOUR: 'green' }, idleMinutes: 77 });
  await computer.exec('echo shared > file');
  const snapshot = await take(computer, 'Shared');
  const other = await atrium.addHost();
  await run('cordon', host.id);
  const key = { 'idempotency-key': randomUUID() };
  const path = `/snapshots/${snapshot.id}/computers`;
  const before = await countOf();
  expect(await send(409, 'POST', path, { count: 100 })).toMatchObject({ code: 'TOO_MANY_COMPUTERS' });
  expect(await countOf()).toBe(before);
  const made = await send<{ data: Seen[] }>(201, 'POST', path, { count: 3, name: 'Try' }, key);
  expect(await send(201, 'POST', path, { count: 3, name: 'Try' }, key)).toEqual(made);
  expect(await countOf()).toBe(before + 3);
  expect(made.data.map(({ name }) => name)).toEqual(['Try 1', 'Try 2', 'Try 3']);
  const outputs = made.data.map(async ({ id }) => {
    const copy = computerOf(user, id);
    const { stdout } = await copy.exec('cat file; echo $COLOUR; hostname >> file');
    expect(await hostOf(copy)).toBe(other);
    return stdout;
  });
  expect(await Promise.all(outputs)).toEqual(Array(3).fill('shared\ngreen\n'));
  expect(made.data[0]).toMatchObject({ status: 'created', idleMinutes: 77, forkedFrom: computer.id });
  expect((await computer.exec('cat file')).stdout).toBe('shared\n');
  await run('uncordon', host.id);
});

test('Another tenant finds nothing', async () => {
  const computer = await newComputer();
  await computer.exec('echo secret > file');
  const snapshot = await take(computer);
  const stranger = await atrium.user();
  const statusOf = async (method: string, path: string, body?: object) =>
    (await stranger.fetch(path, { method, body })).status;
  const own = await statusOf('GET', `${space(stranger)}/snapshots/${snapshot.id}`);
  const theirs = [
    await statusOf('GET', `${space()}/snapshots`),
    await statusOf('GET', `${space()}/snapshots/${snapshot.id}`),
    await statusOf('DELETE', `${space(stranger)}/snapshots/${snapshot.id}`),
    await statusOf('POST', `${space(stranger)}/snapshots/${snapshot.id}/computers`, { count: 1 }),
    await statusOf('POST', `${space(stranger)}/computers`, { fromSnapshotId: snapshot.id }),
    await statusOf('POST', `${computer.path}/snapshots`, {}),
  ];
  const { computerId } = await stranger.get<{ computerId: string }>(`${space(stranger)}/computers/status`);
  const restoring = `${space(stranger)}/computers/${computerId}/restore`;
  expect([own, ...theirs, await statusOf('POST', restoring, { snapshotId: snapshot.id })]).toEqual(Array(8).fill(404));
});

test('A computer of a lost host is restored elsewhere', async () => {
  const doomed = await atrium.addHost();
  for (const { id } of atrium.hosts()) if (id !== doomed.id) await run('cordon', id);
  const computer = await newComputer();
  await computer.exec('echo old > file');
  const snapshot = await take(computer, 'Old');
  await computer.exec('echo new > file');
  await take(computer, 'New');
  expect(await hostOf(computer)).toBe(doomed);
  await doomed.destroy();
  const silent = 'SELECT id FROM computer_hosts WHERE id = ? AND seen_at < NOW(3) - INTERVAL 7 SECOND';
  await waitFor('the host to be lost', async () => (await select(silent, [doomed.id])).length > 0);
  const restored = await computer.expect<Seen>(200, 'POST', '/restore', { snapshotId: snapshot.id });
  expect(['stopped', 'error']).toContain(restored.status);
  for (const { id } of atrium.hosts()) await run('uncordon', id);
  expect((await computer.exec('cat file')).stdout).toBe('old\n');
  expect((await snapshotsOf(computer)).map(({ name }) => name)).toEqual(['Before restoring Old', 'New', 'Old']);
});

test('A deleted snapshot leaves no save and no object', async () => {
  const stranger = await atrium.user();
  const computer = computerOf(
    stranger,
    (
      (await (await stranger.fetch(`${space(stranger)}/computers`, { method: 'POST', body: {} })).json()) as {
        id: string;
      }
    ).id,
  );
  await computer.exec('head -c 1000000 /dev/urandom > file');
  const snapshots = [await take(computer)];
  await computer.exec('head -c 1000000 /dev/urandom > file');
  snapshots.push(await take(computer));
  await computer.expect(204, 'DELETE', '');
  const listed = await stranger.get<{ data: Snapshot[] }>(`${space(stranger)}/snapshots`);
  expect(listed.data.map(({ id }) => id)).toEqual(snapshots.map(({ id }) => id).toReversed());
  const left =
    'SELECT id FROM home_saves WHERE space_id = ? UNION SELECT object_key FROM drive_objects WHERE space_id = ?';
  for (const { id } of snapshots) {
    expect((await select(left, [stranger.spaceId, stranger.spaceId])).length).toBeGreaterThan(0);
    expect((await stranger.fetch(`${space(stranger)}/snapshots/${id}`, { method: 'DELETE' })).status).toBe(204);
  }
  await waitFor('the saves to be collected', async () => {
    await select('UPDATE home_saves SET loose_at = loose_at - INTERVAL 1 DAY WHERE space_id = ?', [stranger.spaceId]);
    return (await select(left, [stranger.spaceId, stranger.spaceId])).length === 0;
  });
});

test('A space has as many snapshots as the operator allows', async () => {
  const { data } = await send<{ data: Snapshot[] }>(200, 'GET', '/snapshots');
  const computer = await newComputer();
  await computer.exec('true');
  for (let count = data.length; count < most; count++) await take(computer);
  const refusal = { code: 'TOO_MANY_SNAPSHOTS', limit: most, used: most };
  expect(await computer.expect(409, 'POST', '/snapshots', {})).toMatchObject(refusal);
  const snapshotId = data[0]?.id;
  expect(await computer.expect(409, 'POST', '/restore', { snapshotId })).toMatchObject(refusal);
  await send(204, 'DELETE', `/snapshots/${snapshotId}`);
  await send(404, 'GET', `/snapshots/${snapshotId}`);
  await take(computer);
});

test('What cannot be done is refused with its reason', async () => {
  const unused = await newComputer();
  const refused = async (path: string, body: unknown = {}) => {
    const response = await user.fetch(space() + path, { method: 'POST', body });
    return [response.status, ((await response.json()) as { code: string }).code];
  };
  expect(await refused(`/computers/${unused.id}/snapshots`)).toEqual([409, 'COMPUTER_UNUSED']);
  expect(await refused(`/computers/${unused.id}/snapshots`, { name: '' })).toEqual([400, expect.any(String)]);
  expect(await refused(`/computers/${unused.id}/snapshots`, { memory: true })).toEqual([422, 'MEMORY_NOT_KEPT']);
  expect(await refused(`/computers/${unused.id}/restore`)).toEqual([400, expect.any(String)]);
  const nowhere = { snapshotId: 'snp_01JAB3C4D5E6F7G8H9JKMNPQV2' };
  expect(await refused(`/computers/${unused.id}/restore`, nowhere)).toEqual([404, 'NOT_FOUND']);
  expect(await refused('/computers', { fromSnapshotId: nowhere.snapshotId })).toEqual([404, 'NOT_FOUND']);
  expect(await refused(`/snapshots/${nowhere.snapshotId}/computers`, { count: 0 })).toEqual([400, expect.any(String)]);
});
