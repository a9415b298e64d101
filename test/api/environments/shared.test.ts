import type { ChatUser } from '../../builders/chat.ts';
import { computerOf, type TestComputer } from '../../builders/computer.ts';
import { environmentsOf } from '../../builders/environments.ts';
import { buildHosts, saved, type TestHosts } from '../../builders/hosts.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { runAtrium } from '../../support/atrium.ts';
import { waitFor } from '../../support/waitFor.ts';

// An environment of one space with which another space makes computers, on hosts that come and go.

const [{ missing } = { missing: 'no driver' }] = drivers;

if (missing !== undefined) {
  test(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
} else sharedTests();

function sharedTests(): void {
  let atrium: TestHosts;
  let owner: ChatUser;
  let other: ChatUser;
  let madeId: string;
  beforeAll(async () => {
    atrium = await buildHosts({ ATRIUM_COMPUTERS_IMAGE_MIB: '8192', ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '5' });
    await atrium.addHost();
    [owner, other] = [await atrium.user(), await atrium.user()];
    const environments = environmentsOf(owner);
    const steps = [{ run: 'useradd app && echo made > /etc/made' }, { user: 'app' }];
    madeId = (await environments.make({ name: 'tools', steps })).id;
    expect(await environments.built(madeId)).toMatchObject({ status: 'ready', isShared: false });
  }, 600_000);
  afterAll(() => atrium?.close());

  const operator = (...args: string[]) => runAtrium(['environment', ...args], atrium.environment.environment);
  const ask = (body: object) => other.fetch(`/api/spaces/${other.spaceId}/computers`, { method: 'POST', body });
  const found = async () =>
    (await other.get<{ data: { id: string }[] }>(`/api/spaces/${other.spaceId}/environments`)).data;
  const codeOf = async (response: Response) => {
    const text = await response.text();
    if (!text.startsWith('{')) throw new Error(`${response.url} answered ${response.status}: ${text}`);
    return (JSON.parse(text) as { code: string }).code;
  };

  async function newComputer(): Promise<TestComputer> {
    const response = await ask({ environmentId: madeId });
    expect(response.status).toBe(201);
    return computerOf(other, ((await response.json()) as { id: string }).id);
  }

  test('The operator shares it, and another space uses it, on another host and without its own host', async () => {
    expect((await ask({ environmentId: madeId })).status).toBe(404);
    expect(await operator('share', madeId)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('may be used by all spaces now'),
    });
    expect((await operator('list')).stdout).toMatch(new RegExp(`${madeId} +tools +version 1 +shared`));
    expect(await found()).toEqual([expect.objectContaining({ id: madeId, isShared: true, spaceId: owner.spaceId })]);
    const theirs = environmentsOf(other);
    expect((await theirs.send('GET', `/${madeId}/log`)).status).toBe(404);
    const changed = await theirs.send('PATCH', `/${madeId}`, { name: 'mine' });
    expect([changed.status, await codeOf(changed)]).toEqual([403, 'ENVIRONMENT_OF_OTHERS']);

    const computer = await newComputer();
    expect((await computer.exec('id -un; cat /etc/made; echo mine > ~/mine')).stdout).toBe('app\nmade\n');
    await saved(computer);
    const host = await atrium.hostOf(computer);
    await atrium.addHost();
    // The next host has nothing of the environment. It reads the saves of both spaces.
    await host?.destroy();
    await waitFor('the computer to answer', async () => (await computer.fetch('/exec', answer)).ok);
    expect((await computer.exec('id -un; cat /etc/made ~/mine')).stdout).toBe('app\nmade\nmine\n');

    const based = await theirs.make({
      name: 'more',
      base: madeId,
      steps: [{ user: 'root' }, { run: 'cat /etc/made' }],
    });
    expect(await theirs.built(based.id)).toMatchObject({ status: 'ready', base: madeId });

    expect((await operator('unshare', madeId)).code).toBe(0);
    expect((await ask({ environmentId: madeId })).status).toBe(404);
    expect(await codeOf(await theirs.send('POST', `/${based.id}/build`))).toBe('ENVIRONMENT_BASE_UNKNOWN');
    expect(await computer.expect(200, 'GET', '')).toMatchObject({
      environment: { id: madeId, name: 'tools', isAvailable: false },
    });
    const used = await environmentsOf(owner).send('DELETE', `/${madeId}`);
    expect([used.status, await codeOf(used)]).toEqual([409, 'ENVIRONMENT_IN_USE']);
    expect((await environmentsOf(owner).send('DELETE', `/${madeId}?force=true`)).status).toBe(204);
    await computer.fetch('/stop', { method: 'POST' });
    expect((await computer.exec('id -un; cat /etc/made ~/mine')).stdout).toBe('app\nmade\nmine\n');
    const space = await owner.fetch(`/api/spaces/${owner.spaceId}`, { method: 'DELETE' });
    expect([space.status, await codeOf(space)]).toEqual([409, 'ENVIRONMENTS_SHARED']);
    expect(await operator('share', madeId)).toMatchObject({ code: 1 });
    // It was started, so it keeps what it has.
    expect(await operator('unshare', madeId, '--force')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('0 computers of others'),
    });
  }, 900_000);

  const answer = { method: 'POST', body: { command: 'true' } };
}
