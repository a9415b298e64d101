import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../api/identity/support.ts';
import type { ChatUser } from '../builders/chat.ts';
import type { TestComputer } from '../builders/computer.ts';
import { buildHosts, look, newComputer, saved, type TestHost, type TestHosts } from '../builders/hosts.ts';
import { pidsWith, withDescendants } from '../support/processes.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

// One of three hosts fails in every way. Its computer goes on elsewhere with all that was saved, what was not saved is
// kept where its disk is still there, and the computers of the other hosts do not notice.

let atrium: TestHosts;
let user: ChatUser;
/** The ways from a host to the database, and from the API to the host. */
const ways = new Map<TestHost, { database: TcpProxy; api: TcpProxy }>();
beforeAll(async () => {
  atrium = await buildHosts();
  user = await atrium.user();
  for (let count = 0; count < 3; count++) await addHost();
});
afterAll(async () => {
  await atrium.close();
  for (const { database, api } of ways.values()) await Promise.all([database.stop(), api.stop()]);
});

async function addHost(): Promise<void> {
  const { ATRIUM_DATABASE_URL: url = '' } = atrium.environment.environment;
  const port = await freePort();
  const database = await startTcpProxy(() => url);
  const api = await startTcpProxy(() => `http://127.0.0.1:${port}`);
  const host = await atrium.addHost({
    ATRIUM_DATABASE_URL: Object.assign(new URL(url), { host: new URL(database.url).host }).href,
    ATRIUM_COMPUTERS_PORT: String(port),
    ATRIUM_COMPUTERS_URL: api.url,
  });
  ways.set(host, { database, api });
}

function wayOf(host: TestHost) {
  const way = ways.get(host);
  if (way === undefined) throw new Error('The host is not one of this test.');
  return way;
}

/** All that runs on the machine of a host. */
const machineOf = ({ dir, worker }: TestHost) => withDescendants([worker.pid, ...pidsWith(dir)]);

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It has ended with another one.
    }
  }
}

const count = 'n=0; while true; do n=$((n+1)); echo $n > count.new; mv count.new count; sleep 0.02; done';

interface Counting {
  computer: TestComputer;
  host: TestHost;
  processId: string;
}

/** A computer on each host, with a saved file and a program that goes on changing its home. */
async function buildCounting(): Promise<[Counting, ...Counting[]]> {
  const all: Counting[] = [];
  for (const _ of atrium.hosts()) {
    const computer = await newComputer(user);
    await computer.exec('echo kept > kept');
    const host = await atrium.hostOf(computer);
    if (host === undefined) throw new Error('The computer is on no host.');
    const { id } = await computer.expect<{ id: string }>(201, 'POST', '/processes', { command: count });
    await saved(computer);
    all.push({ computer, host, processId: id });
  }
  expect(new Set(all.map(({ host }) => host)).size).toBe(3);
  return all as [Counting, ...Counting[]];
}

async function expectUntouched({ computer, host, processId }: Counting): Promise<void> {
  expect(await atrium.hostOf(computer)).toBe(host);
  expect(await look(computer)).toMatchObject({ status: 'running', generation: 1, homeSaveError: null });
  expect(await computer.expect(200, 'GET', `/processes/${processId}`)).toMatchObject({ state: 'running' });
}

async function removeAll(all: readonly Counting[]): Promise<void> {
  for (const { computer } of all) expect((await computer.fetch('', { method: 'DELETE' })).ok).toBe(true);
}

interface Fault {
  name: string;
  /** Returns how the host comes back. Undefined if it does not. */
  strike(host: TestHost): Promise<(() => Promise<void> | void) | undefined>;
}

const faults: Fault[] = [
  {
    name: 'is killed with all that runs on it',
    async strike(host) {
      signal(machineOf(host), 'SIGKILL');
      await host.worker.exited;
      return () => host.restart();
    },
  },
  {
    name: 'is frozen',
    async strike(host) {
      const pids = machineOf(host);
      signal(pids, 'SIGSTOP');
      return () => signal(pids, 'SIGCONT');
    },
  },
  {
    name: 'is cut off from the database only',
    async strike(host) {
      const { database } = wayOf(host);
      database.shut();
      return () => database.open();
    },
  },
  {
    name: 'is gone with its disk',
    async strike(host) {
      await host.destroy();
      return undefined;
    },
  },
];

test.each(faults)(
  'The computer of a host that $name goes on elsewhere, and the others where they are',
  async (fault) => {
    const all = await buildCounting();
    const [{ computer, host }, ...others] = all;
    const comeBack = await fault.strike(host);
    await waitFor('the computer to run on another host', async () => {
      const now = await atrium.hostOf(computer);
      return others.some(({ host: other }) => other === now) && (await look(computer)).status === 'running';
    });
    expect(await look(computer)).toMatchObject({ generation: 2 });
    const { stdout } = await computer.exec('cat kept count; rm count; echo mine > mine');
    expect(stdout).toMatch(/^kept\n\d+\n$/);
    for (const other of others) await expectUntouched(other);
    if (comeBack === undefined) await addHost();
    else {
      await comeBack();
      const path = `/api/spaces/${user.spaceId}/computers/${computer.id}/snapshots`;
      const snapshot = await waitFor('the snapshot of the unsaved work', async () => {
        const { data } = await user.get<{ data: { id: string; name: string; status: string }[] }>(path);
        return data.find(({ status }) => status === 'kept');
      });
      expect(snapshot.name).toContain(`Work on ${host.id} that was not saved before `);
      await waitFor('the old home to be removed', () => !existsSync(join(host.dir, computer.id)));
      const copy = await newComputer(user, { fromSnapshotId: snapshot.id });
      const found = await copy.exec('cat count');
      expect(Number(found.stdout)).toBeGreaterThanOrEqual(Number(stdout.split('\n')[1]));
      await copy.expect(204, 'DELETE', '');
    }
    await saved(computer);
    expect(await look(computer)).toMatchObject({ status: 'running', generation: 2, homeSaveError: null });
    expect((await computer.exec('ls -I drive')).stdout).toBe('kept\nmine\n');
    for (const other of others) await expectUntouched(other);
    await removeAll(all);
  },
);

test('A host that only the API cannot reach keeps its computer, which goes on', async () => {
  const all = await buildCounting();
  const [struck, ...others] = all;
  const { computer, host } = struck;
  const { api } = wayOf(host);
  api.shut();
  const since = Date.now();
  const refused = await computer.fetch('/exec', { method: 'POST', body: { command: 'true' } });
  expect(refused.status).toBeGreaterThanOrEqual(502);
  const { hostLostMs } = atrium.environment.config.computers;
  await waitFor('reports of the host for longer than a silent one is waited for', async () => {
    const sql = 'SELECT id FROM computer_hosts WHERE id = ? AND seen_at > ?';
    const [rows] = await atrium.environment.database.pool.query(sql, [host.id, new Date(since + hostLostMs)]);
    return (rows as object[]).length > 0;
  });
  const { homeSavedAt } = await look(computer);
  expect(Date.parse(homeSavedAt ?? '')).toBeGreaterThan(since);
  api.open();
  for (const each of [struck, ...others]) await expectUntouched(each);
  expect((await computer.exec('cat kept')).stdout).toBe('kept\n');
  await removeAll(all);
});
