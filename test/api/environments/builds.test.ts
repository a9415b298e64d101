import type { ChatUser } from '../../builders/chat.ts';
import { computerOf } from '../../builders/computer.ts';
import { environmentsOf } from '../../builders/environments.ts';
import { buildHosts, type TestHost, type TestHosts } from '../../builders/hosts.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { waitFor } from '../../support/waitFor.ts';

// Builds that fail, are cancelled, or lose their worker.

const [{ missing } = { missing: 'no driver' }] = drivers;

if (missing !== undefined) {
  test(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
} else buildTests();

function buildTests(): void {
  let atrium: TestHosts;
  let host: TestHost;
  let user: ChatUser;
  let environments: ReturnType<typeof environmentsOf>;
  let madeId: string;
  beforeAll(async () => {
    atrium = await buildHosts({ ATRIUM_COMPUTERS_IMAGE_MIB: '8192', ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '5' });
    host = await atrium.addHost();
    user = await atrium.user();
    environments = environmentsOf(user);
    madeId = (await environments.make({ name: 'tools', steps: [{ run: 'useradd app' }, { user: 'app' }] })).id;
    expect((await environments.built(madeId)).status).toBe('ready');
  }, 600_000);
  afterAll(() => atrium?.close());

  const computers = () => `/api/spaces/${user.spaceId}/computers`;

  const builders = async () => {
    const { data } = await user.get<{ data: { id: string; name: string }[] }>(computers());
    return data.filter(({ name }) => name.startsWith('Build of'));
  };

  async function count(sql: string, values: unknown[]): Promise<number> {
    return ((await atrium.environment.database.pool.query(sql, values))[0] as unknown[]).length;
  }

  test('A step that fails is shown with the end of its output, and what was built before it stays', async () => {
    const { id } = await environments.make({
      name: 'fails',
      base: madeId,
      steps: [{ user: 'root' }, { run: 'echo one' }, { run: 'echo broken >&2; exit 3' }, { run: 'true' }],
    });
    const failed = await environments.built(id);
    expect(failed).toMatchObject({
      status: 'failed',
      readyVersion: null,
      latest: { error: { code: 'STEP_FAILED' }, failedStep: { number: 3, exitCode: 3, output: 'broken\n' } },
    });
    expect(failed.latest.steps.map(({ status }) => status)).toEqual(['done', 'done', 'failed', 'waiting']);
    const computer = await user.fetch(computers(), { method: 'POST', body: { environmentId: id } });
    expect(await computer.json()).toMatchObject({ status: 409, code: 'ENVIRONMENT_NOT_READY' });
    expect((await environments.send('DELETE', `/${id}`)).status).toBe(204);
    expect((await environments.send('GET', `/${id}`)).status).toBe(404);
  }, 600_000);

  test('A build is cancelled in the middle of a step, and its computer is removed', async () => {
    const { id, latest } = await environments.make({ name: 'cancelled', base: madeId, steps: [{ run: 'sleep 1000' }] });
    await waitFor('the step', async () => (await environments.look(id)).latest.steps[0]?.status === 'running');
    const cancel = await user.fetch(`/api/operations/${latest.operationId}/cancel`, { method: 'POST' });
    expect(cancel.status).toBe(200);
    expect(await environments.built(id)).toMatchObject({ status: 'cancelled', latest: { error: null } });
    await waitFor('the computer to be removed', async () => (await builders()).length === 0);
    expect(await environments.log(id, { accept: 'text/event-stream' })).toMatch(/event: exit/);
  }, 600_000);

  test('A step goes on when its worker is killed, and runs once', async () => {
    const run = 'echo begun >> /srv/count; while [ ! -e /srv/go ]; do sleep 0.1; done; cat /srv/count';
    const { id } = await environments.make({ name: 'killed', base: madeId, steps: [{ user: 'root' }, { run }] });
    await waitFor('the step', async () => (await environments.look(id)).latest.steps[1]?.status === 'running');
    const [builder] = await builders();
    const computer = computerOf(user, builder?.id ?? '');
    await waitFor('its file', async () => (await computer.exec('cat /srv/count')).exitCode === 0);
    await host.restart();
    await waitFor(
      'the computer to answer',
      async () => (await computer.fetch('/exec', { method: 'POST', body: { command: 'touch /srv/go' } })).ok,
    );
    expect(await environments.built(id)).toMatchObject({ status: 'ready' });
    expect(await environments.log(id)).toMatch(/cat \/srv\/count\nbegun\n$/);
  }, 600_000);

  test('The log is followed while the steps run', async () => {
    const { id } = await environments.make({
      name: 'followed',
      base: madeId,
      steps: [{ run: 'echo one; sleep 1; echo two' }],
    });
    const log = await environments.log(id, { accept: 'text/event-stream' });
    expect([...log.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text).join('')).toBe(
      'Step 1 of 1: run echo one; sleep 1; echo two\\none\\ntwo\\n',
    );
    expect(log).toMatch(/event: exit\n.*\n.*"exitCode":0/);
    expect((await environments.look(id)).status).toBe('ready');
  }, 600_000);

  test('What a step has made is saved by the next worker when one is killed meanwhile', async () => {
    const before = await count('SELECT id FROM home_saves', []);
    const run = 'head -c 60000000 /dev/urandom > /srv/big; sha256sum /srv/big';
    const { id } = await environments.make({ name: 'saved', base: madeId, steps: [{ user: 'root' }, { run }] });
    const pieces = `SELECT p.number FROM home_save_pieces p JOIN home_saves s ON s.id = p.save_id
      JOIN computers c ON c.id = s.computer_id AND c.name = 'Build of saved v1'`;
    await waitFor('the first piece', async () => (await count(pieces, [])) > 0);
    await host.restart();
    expect(await environments.built(id)).toMatchObject({ status: 'ready', latest: { error: null } });
    expect(await count('SELECT id FROM home_saves', [])).toBeGreaterThan(before);
    const sum = /^[0-9a-f]{64} {2}.*$/m.exec(await environments.log(id))?.[0];
    const response = await user.fetch(computers(), { method: 'POST', body: { environmentId: id } });
    const computer = computerOf(user, ((await response.json()) as { id: string }).id);
    expect((await computer.exec('sha256sum /srv/big')).stdout).toBe(`${sum}\n`);
  }, 600_000);
}
