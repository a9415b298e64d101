import { randomUUID } from 'node:crypto';
import type { ChatUser } from '../../builders/chat.ts';
import { computerOf, type TestComputer } from '../../builders/computer.ts';
import { environmentsOf } from '../../builders/environments.ts';
import { buildHosts, type TestHosts } from '../../builders/hosts.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { waitFor } from '../../support/waitFor.ts';

const [{ missing } = { missing: 'no driver' }] = drivers;

if (missing !== undefined) {
  process.stderr.write(`\nNOT RUN: environments: ${missing}\n`);
  test(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
} else environmentTests();

interface ComputerBody {
  id: string;
  status: string;
  base: string | null;
  environment: { id: string; name: string; version: number; isOutdated: boolean } | null;
}

function environmentTests(): void {
  let atrium: TestHosts;
  let user: ChatUser;
  let environments: ReturnType<typeof environmentsOf>;
  beforeAll(async () => {
    atrium = await buildHosts({ ATRIUM_COMPUTERS_IMAGE_MIB: '8192', ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '5' });
    await atrium.addHost();
    user = await atrium.user();
    environments = environmentsOf(user);
  }, 600_000);
  afterAll(() => atrium?.close());

  const computers = () => `/api/spaces/${user.spaceId}/computers`;
  const look = (computer: TestComputer) => computer.expect<ComputerBody>(200, 'GET', '');

  async function newComputer(body: object): Promise<TestComputer> {
    const response = await user.fetch(computers(), { method: 'POST', body });
    expect(response.status).toBe(201);
    return computerOf(user, ((await response.json()) as { id: string }).id);
  }

  async function put(path: string, content: string): Promise<void> {
    const body = new FormData();
    body.append('path', path);
    body.append('file', new Blob([content]), 'a');
    const url = `${atrium.api.apiUrl}/api/spaces/${user.spaceId}/drive/upload`;
    const response = await fetch(url, { method: 'POST', body, headers: { authorization: `Bearer ${user.token}` } });
    expect(response.status).toBe(200);
  }

  const builders = async () => {
    const { data } = await user.get<{ data: { name: string }[] }>(computers());
    return data.filter(({ name }) => name.startsWith('Build of'));
  };

  const steps = [
    { run: 'useradd --create-home app' },
    { env: { GREETING: 'hello' } },
    { workdir: '/srv/work' },
    { copy: { from: '/files', to: 'in', owner: 'app' } },
    { copy: { from: '/files/a.txt', to: '/etc/' } },
    { run: 'chown app: . && echo "$GREETING from $(whoami) in $(pwd)"' },
    { user: 'app' },
    { run: 'echo "$(id -un) $(cat in/sub/b.txt)" > note' },
  ];
  let madeId: string;

  test('An environment is built in steps, and computers begin with it as root or as its user', async () => {
    await put('/files/a.txt', 'a');
    await put('/files/sub/b.txt', 'b');
    const made = await environments.make({ name: 'tools', steps });
    madeId = made.id;
    expect(made).toMatchObject({ name: 'tools', base: 'debian', status: 'building', version: 1, readyVersion: null });
    const built = await environments.built(made.id);
    expect(built.latest.error).toBeNull();
    expect(built).toMatchObject({
      status: 'ready',
      readyVersion: 1,
      steps,
      latest: { number: 1, sizeBytes: expect.any(Number) },
    });
    expect(built.latest.steps.map(({ status }) => status)).toEqual(steps.map(() => 'done'));
    await waitFor('the computer of the build to be removed', async () => (await builders()).length === 0);
    const log = await environments.log(made.id);
    expect(log).toContain('Step 1 of 8: run useradd --create-home app\n');
    expect(log).toContain('hello from root in /srv/work\n');
    expect(await environments.log(made.id, { accept: 'text/event-stream' })).toMatch(/event: exit\n.*\n.*"exitCode":0/);
    const computer = await newComputer({ environmentId: made.id });
    const { stdout } = await computer.exec(
      'id -un; pwd; echo $GREETING; cat note; ls -l in | grep -c app; stat -c %U /etc/a.txt',
    );
    expect(stdout).toBe('app\n/srv/work\nhello\napp b\n2\nroot\n');
    expect(await look(computer)).toMatchObject({
      base: 'debian',
      environment: { id: made.id, name: 'tools', version: 1, isOutdated: false },
    });
  }, 600_000);

  test('The environments of a space share their base, which is saved once', async () => {
    const { id } = await environments.make({ name: 'small', steps: [{ run: 'echo small > /srv/small' }] });
    expect((await environments.built(id)).status).toBe('ready');
    const sql = `SELECT v.environment_id AS environmentId, s.base_id AS baseId, s.stored_bytes AS bytes
      FROM environment_versions v JOIN home_saves s ON s.id = v.save_id WHERE v.space_id = ?`;
    const [rows] = await atrium.environment.database.pool.query(sql, [user.spaceId]);
    const saves = rows as { environmentId: string; baseId: string; bytes: number }[];
    expect(new Set(saves.map(({ baseId }) => baseId)).size).toBe(1);
    expect(saves.find(({ environmentId }) => environmentId === id)?.bytes).toBeLessThan(100_000);
    const computer = await newComputer({ environmentId: id });
    expect((await computer.exec('cat /srv/small; ls /srv')).stdout).toBe('small\nsmall\n');
  }, 600_000);

  test('What was built before is not built again, and a computer keeps its version until it is changed', async () => {
    const computer = await newComputer({ environmentId: madeId });
    await computer.exec('echo mine > ~/mine');
    const again = await environments.again(madeId);
    expect(again).toMatchObject({ version: 2, status: 'building', readyVersion: 1 });
    const kept = await environments.built(madeId);
    const work = kept.latest.steps.filter(({ step }) => !('env' in step));
    expect(work.map(({ status }) => status)).toEqual(work.map(() => 'kept'));
    const changed = steps.with(-1, { run: 'echo second > note' });
    expect((await environments.send('PATCH', `/${madeId}`, { steps: changed })).status).toBe(200);
    await environments.again(madeId);
    const third = await environments.built(madeId);
    expect(third.latest.steps.filter(({ status }) => status === 'kept')).toHaveLength(6);
    expect((await look(computer)).environment).toMatchObject({ version: 1, isOutdated: true });
    const patched = await computer.fetch('', { method: 'PATCH', body: { environmentId: madeId } });
    expect([200, 202]).toContain(patched.status);
    await waitFor('the new system', async () => (await look(computer)).environment?.version === 3);
    expect((await computer.exec('cat note ~/mine')).stdout).toBe('second\nmine\n');
    const { data } = await computer.expect<{ data: { id: string; name: string }[] }>(200, 'GET', '/snapshots');
    expect(data.map(({ name }) => name)).toEqual(['Before restoring version 3 of tools']);
    const before = await newComputer({ fromSnapshotId: data[0]?.id });
    expect((await before.exec('cat note ~/mine')).stdout).toBe('app b\nmine\n');
    expect((await look(before)).environment).toMatchObject({ version: 1 });
  }, 600_000);

  test('A computer without a system gets one, and keeps its home', async () => {
    const computer = await newComputer({});
    await computer.exec('echo mine > mine');
    await computer.fetch('', { method: 'PATCH', body: { environmentId: madeId, environmentVersion: 1 } });
    await waitFor('the system', async () => (await look(computer)).environment?.version === 1);
    expect((await computer.exec('id -un; cat ~/mine')).stdout).toBe('app\nmine\n');
    const fork = await computer.expect<ComputerBody>(201, 'POST', '/fork');
    expect(fork).toMatchObject({ base: 'debian', environment: { version: 1 } });
    expect((await computerOf(user, fork.id).exec('cat /srv/work/note ~/mine')).stdout).toBe('app b\nmine\n');
  }, 600_000);

  test('The same key makes one environment with one version', async () => {
    const key = { 'idempotency-key': randomUUID() };
    const body = { name: 'once', steps: [steps[0]] };
    const made = await environments.make(body, key);
    expect(await environments.make(body, key)).toEqual(made);
    await environments.built(made.id);
    const { data } = await user.get<{ data: unknown[] }>(
      `/api/spaces/${user.spaceId}/environments/${made.id}/versions`,
    );
    expect(data).toHaveLength(1);
  }, 600_000);

  test.each([
    [400, 'INVALID_REQUEST', { name: 'Upper Case' }],
    [400, 'INVALID_REQUEST', { name: 'a', steps: [{ run: 'true', env: {} }] }],
    [422, 'ENVIRONMENT_INVALID', { name: 'a', steps: [], dockerfile: 'FROM debian' }],
    [422, 'ENVIRONMENT_INVALID', { name: 'a', base: 'debian', devcontainer: { image: 'debian' } }],
    [409, 'ENVIRONMENT_NAME_TAKEN', { name: 'tools' }],
    [422, 'ENVIRONMENT_BASE_UNKNOWN', { name: 'a', base: 'ubuntu' }],
    [422, 'ENVIRONMENT_BASE_UNKNOWN', { name: 'a', dockerfile: 'FROM node:22' }],
    [422, 'IMAGE_REGISTRY_NOT_ALLOWED', { name: 'a', base: 'registry.example.org/team/tools:1' }],
    [422, 'IMAGE_REGISTRY_NOT_ALLOWED', { name: 'a', dockerfile: 'FROM localhost:5000/tools' }],
    [422, 'IMAGE_REGISTRY_NOT_ALLOWED', { name: 'a', devcontainer: { image: 'registry.example.org/tools' } }],
    [422, 'ENVIRONMENT_FILE_UNKNOWN', { name: 'a', steps: [{ copy: { from: '/nowhere', to: '/a' } }] }],
    [422, 'ENVIRONMENT_FILE_UNKNOWN', { name: 'a', dockerfile: 'FROM debian', contextFolderId: 'itm_1' }],
    [422, 'DOCKERFILE_INVALID', { name: 'a', dockerfile: 'FROM debian\nFETCH' }],
    [422, 'DEVCONTAINER_FEATURES_REFUSED', { name: 'a', devcontainer: { image: 'debian', features: { a: {} } } }],
    [422, 'VARIABLE_REFUSED', { name: 'a', steps: [{ env: { LD_PRELOAD: '/a.so' } }] }],
  ])('%i %s for %j', async (status, code, body) => {
    const response = await environments.send('POST', '', body);
    expect(await response.json()).toMatchObject({ status, code });
  });

  test('Another tenant finds nothing', async () => {
    const stranger = await atrium.user();
    const own = `/api/spaces/${stranger.spaceId}`;
    for (const path of ['', '/log', '/versions']) {
      expect((await stranger.fetch(`/api/spaces/${user.spaceId}/environments/${madeId}${path}`)).status).toBe(404);
      expect((await stranger.fetch(`${own}/environments/${madeId}${path}`)).status).toBe(404);
    }
    const computer = await stranger.fetch(`${own}/computers`, { method: 'POST', body: { environmentId: madeId } });
    expect(computer.status).toBe(404);
    const based = await stranger.fetch(`${own}/environments`, { method: 'POST', body: { name: 'a', base: madeId } });
    expect(await based.json()).toMatchObject({ status: 422, code: 'ENVIRONMENT_BASE_UNKNOWN' });
    // What one space has built is not there for another.
    const theirs = environmentsOf(stranger);
    const { id } = await theirs.make({ name: 'tools', steps: [steps[0]] });
    expect((await theirs.built(id)).latest.steps.map(({ status }) => status)).toEqual(['done']);
  }, 600_000);
}
