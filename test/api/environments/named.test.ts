import { appsOf, manifestOf } from '../../builders/app.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { computerOf } from '../../builders/computer.ts';
import { environmentsOf } from '../../builders/environments.ts';
import { buildHosts, newComputer, type TestHost, type TestHosts } from '../../builders/hosts.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { waitFor } from '../../support/waitFor.ts';

// What names an environment instead of a computer: apps and browsers. Builds that wait for their turn.

const [{ missing } = { missing: 'no driver' }] = drivers;

if (missing !== undefined) {
  test(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
} else namedTests();

function namedTests(): void {
  let atrium: TestHosts;
  let host: TestHost;
  let user: ChatUser;
  let apps: ReturnType<typeof appsOf>;
  let environments: ReturnType<typeof environmentsOf>;
  let madeId: string;
  beforeAll(async () => {
    atrium = await buildHosts({
      ATRIUM_COMPUTERS_IMAGE_MIB: '8192',
      ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '5',
      ATRIUM_COMPUTERS_RUNNING_PER_SPACE: '3',
    });
    host = await atrium.addHost();
    user = await atrium.user();
    apps = appsOf({ url: atrium.api.apiUrl }, user);
    environments = environmentsOf(user);
    madeId = (await environments.make({ name: 'tools', steps: [{ run: 'echo made > /etc/made' }] })).id;
    expect((await environments.built(madeId)).status).toBe('ready');
  }, 600_000);
  afterAll(() => atrium?.close());

  const space = () => `/api/spaces/${user.spaceId}`;

  async function appOf(manifest: string): Promise<string> {
    const itemId = await apps.folder({ 'atrium.yaml': manifest });
    expect((await apps.make(itemId)).status).toBe(201);
    return itemId;
  }

  test('The components of an app run on a computer of the environment that their manifest names', async () => {
    const command = 'cat /etc/made; id -un; cat file';
    const components = [
      { name: 'run', kind: 'process', command, default: true },
      { name: 'other', kind: 'process', command, environment: 'gone' },
    ];
    const itemId = await appOf(JSON.stringify({ name: 'App', environment: 'tools', components }));
    await apps.put(itemId, 'file', 'of the app');
    expect((await apps.get(itemId)).body.components).toMatchObject([{ environment: 'tools' }, { environment: 'gone' }]);
    const { body } = await apps.run(itemId);
    const run = await apps.ended(body.runId);
    expect(run).toMatchObject({ status: 'succeeded', output: 'made\nroot\nof the app' });
    const computer = computerOf(user, run.computerId);
    expect(await computer.expect(200, 'GET', '')).toMatchObject({
      name: 'tools',
      environment: { id: madeId, version: 1 },
    });
    const second = await apps.ended((await apps.run(itemId)).body.runId);
    expect(second.computerId).toBe(run.computerId);
    expect(await apps.run(itemId, { component: 'other' })).toMatchObject({
      status: 409,
      body: { code: 'APP_ENVIRONMENT_UNKNOWN' },
    });
    const plain = await newComputer(user);
    const chosen = await apps.send('POST', `/api/apps/${itemId}/process/set-computer`, { computerId: plain.id });
    expect(chosen).toMatchObject({ status: 409, body: { code: 'APP_ENVIRONMENT_MISMATCH' } });
  }, 600_000);

  test('A name that no environment can have is a fault of the manifest, with its line', async () => {
    const itemId = await apps.folder({
      'atrium.yaml':
        'name: App\ncomponents:\n  - name: run\n    kind: process\n    command: pwd\n    environment: Bad Name\n',
    });
    expect(await apps.make(itemId)).toMatchObject({
      status: 422,
      body: {
        code: 'APP_MANIFEST_INVALID',
        errors: [{ pointer: 'atrium.yaml:6:18', detail: expect.stringContaining('environment is not a name') }],
      },
    });
  });

  test('A deleted environment stops new runs, and says why', async () => {
    const { id } = await environments.make({ name: 'soon-gone', base: madeId });
    expect((await environments.built(id)).status).toBe('ready');
    const itemId = await appOf(manifestOf('cat /etc/made', { environment: 'soon-gone' }));
    expect(await apps.ended((await apps.run(itemId)).body.runId)).toMatchObject({ output: 'made\n' });
    expect((await environments.send('DELETE', `/${id}`)).status).toBe(409);
    expect((await environments.send('DELETE', `/${id}?force=true`)).status).toBe(204);
    expect(await apps.run(itemId)).toMatchObject({ status: 409, body: { code: 'APP_ENVIRONMENT_UNKNOWN' } });
  }, 600_000);

  test('A browser runs on the computer of the environment, with the Chromium of that', async () => {
    const start = (body: object) => user.fetch(`${space()}/browsers/sessions`, { method: 'POST', body });
    const without = await start({ environmentId: madeId });
    expect(await without.json()).toMatchObject({ status: 422, code: 'BROWSERS_UNAVAILABLE' });
    const unknown = await start({ environmentId: 'env_01JAB3C4D5E6F7G8H9JKMNPQV3' });
    expect(await unknown.json()).toMatchObject({ status: 404, code: 'ENVIRONMENT_UNKNOWN' });
    const { id: computerId } = await newComputer(user);
    const both = await start({ environmentId: madeId, computerId });
    expect(await both.json()).toMatchObject({ status: 422, code: 'COMPUTER_AMBIGUOUS' });
  }, 600_000);

  test('A build waits while the space runs as many computers as it may, and goes on by itself', async () => {
    const busy = await atrium.user();
    const theirs = environmentsOf(busy);
    const running = [await newComputer(busy), await newComputer(busy), await newComputer(busy)];
    for (const computer of running) await computer.exec('true');
    const { id } = await theirs.make({ name: 'waits', steps: [{ run: 'true' }] });
    const cancelled = await theirs.make({ name: 'cancelled', steps: [{ run: 'echo other' }] });
    await waitFor('both builds to wait', async () =>
      (await Promise.all([id, cancelled.id].map(theirs.look))).every(({ status }) => status === 'queued'),
    );
    expect((await theirs.look(id)).latest).toMatchObject({
      status: 'queued',
      waitsFor: { code: 'TOO_MANY_RUNNING', detail: expect.stringContaining('Stop one') },
      error: null,
    });
    // The next worker goes on waiting.
    await host.restart();
    const cancel = `/api/operations/${cancelled.latest.operationId}/cancel`;
    expect((await busy.fetch(cancel, { method: 'POST' })).status).toBe(200);
    expect(await theirs.built(cancelled.id)).toMatchObject({ status: 'cancelled', latest: { waitsFor: null } });
    await running[0]?.fetch('/stop', { method: 'POST' });
    expect(await theirs.built(id)).toMatchObject({ status: 'ready', latest: { waitsFor: null } });
  }, 600_000);

  test('The metrics of a computer tell its system from the rest', async () => {
    const computer = await newComputer(user, { environmentId: madeId });
    await computer.exec('head -c 20000000 /dev/urandom > ~/big; sync');
    const { use } = await computer.expect<{ use: { diskMiB: number; systemMiB: number } }>(200, 'GET', '/metrics');
    expect(use.systemMiB).toBeGreaterThan(50);
    expect(use.diskMiB - use.systemMiB).toBeGreaterThan(10);
    expect(use.diskMiB - use.systemMiB).toBeLessThan(100);
  }, 600_000);
}
