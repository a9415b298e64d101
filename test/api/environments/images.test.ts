import type { ChatUser } from '../../builders/chat.ts';
import { computerOf } from '../../builders/computer.ts';
import { environmentsOf } from '../../builders/environments.ts';
import { buildHosts, type TestHost, type TestHosts } from '../../builders/hosts.ts';
import { imageWith, type LayerEntry, smallRoot, tarOf } from '../../builders/images.ts';
import { type FakeRegistry, startFakeRegistry } from '../../fakes/registry.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { getImagePrograms, missingForImages } from '../../support/imagePrograms.ts';
import { pidsWith } from '../../support/processes.ts';
import { waitFor } from '../../support/waitFor.ts';

// Environments that begin with images of a registry.

const [{ missing: noDriver } = { missing: 'no driver' }] = drivers;
const missing = noDriver ?? missingForImages();

if (missing !== undefined) {
  process.stderr.write(`\nNOT RUN: environments from images: ${missing}\n`);
  test(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
} else imageTests();

function imageTests(): void {
  let registry: FakeRegistry;
  let atrium: TestHosts;
  let host: TestHost;
  let user: ChatUser;
  let environments: ReturnType<typeof environmentsOf>;
  const small = smallRoot();

  beforeAll(async () => {
    await getImagePrograms();
    registry = await startFakeRegistry();
    atrium = await buildHosts({
      ATRIUM_COMPUTERS_IMAGE_MIB: '4096',
      ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '5',
      ATRIUM_COMPUTERS_PER_SPACE: '2',
      ATRIUM_IMAGE_REGISTRIES: `${registry.host},registry.example.org`,
      ATRIUM_IMAGE_REGISTRIES_INSECURE: registry.host,
    });
    host = await atrium.addHost();
    user = await atrium.user();
    environments = environmentsOf(user);
  }, 600_000);
  afterAll(async () => {
    await atrium?.close();
    await registry?.[Symbol.asyncDispose]();
  });

  let count = 0;
  function put(entries: LayerEntry[], config: object = {}) {
    count += 1;
    const image = imageWith([tarOf([...small, ...entries])], config);
    const repository = `team/image${count}`;
    return { name: registry.put(repository, '1', image), image, repository };
  }
  const blobsOf = (repository: string) =>
    registry.requests.filter((path) => path.startsWith(`/v2/${repository}/blobs/`)).length;
  const computers = () => `/api/spaces/${user.spaceId}/computers`;
  /** The computer of a build counts until it is removed, which is after the end of the build. */
  const buildersToGo = () =>
    waitFor('the computers of builds to go', async () => {
      const { data } = await user.get<{ data: { name: string }[] }>(computers());
      return !data.some(({ name }) => name.startsWith('Build of'));
    });

  test('A Dockerfile begins with an image, whose settings and files its computers have', async () => {
    const config = { Env: ['FROM_IMAGE=yes', 'LD_PRELOAD=/a.so'], WorkingDir: '/srv/app', User: 'app', Cmd: ['sh'] };
    const { name, image, repository } = put([{ name: 'srv/note', content: 'of the image\n' }], config);
    const dockerfile = `FROM ${name}\nENV OWN=1\nUSER root\nRUN cat /srv/note > /opt/copy\nUSER app`;
    const { id, latest } = await environments.make({ name: 'from-image', dockerfile });
    expect(latest).toMatchObject({ base: name, image: null, steps: [{ number: 1 }, {}, {}, {}] });
    const built = await environments.built(id);
    expect(built).toMatchObject({ base: name, status: 'ready', latest: { error: null } });
    expect(built.latest.image).toBe(`${registry.host}/${repository}@${image.digest}`);
    expect(built.latest.steps.map(({ step }) => Object.keys(step)[0])).toEqual([
      'env',
      'workdir',
      'user',
      'env',
      'user',
      'run',
      'user',
    ]);
    expect(built.latest.steps.map(({ status }) => status)).toEqual(Array(7).fill('done'));
    expect(built.latest.warnings).toEqual([expect.stringContaining('CMD'), expect.stringContaining('LD_PRELOAD')]);
    await buildersToGo();
    const response = await user.fetch(computers(), { method: 'POST', body: { environmentId: id } });
    const computer = computerOf(user, ((await response.json()) as { id: string }).id);
    const seen = await computer.exec('echo $FROM_IMAGE$OWN; pwd; id -un; cat /opt/copy; stat -c %U ~; touch ~/own');
    expect(seen.stdout).toBe('yes1\n/srv/app\napp\nof the image\napp\n');
    expect((await user.fetch(`${computers()}/${computer.id}`, { method: 'DELETE' })).status).toBeLessThan(300);
    // What the registry has not changed is not fetched again.
    const fetched = blobsOf(repository);
    await environments.again(id, { withoutCache: true });
    const again = await environments.built(id);
    expect(again).toMatchObject({ version: 2, status: 'ready' });
    // Its settings are asked for.
    expect(blobsOf(repository)).toBeLessThanOrEqual(fetched + 1);
    // The tag has moved.
    const moved = imageWith([tarOf([...small, { name: 'srv/note', content: 'of the next\n' }])]);
    registry.put(repository, '1', moved);
    await environments.again(id);
    const newer = await environments.built(id);
    expect(newer.latest).toMatchObject({ status: 'ready', image: expect.stringContaining(moved.digest), warnings: [] });
  }, 600_000);

  test.each([
    ['IMAGE_NOT_FOUND', () => `${registry.host}/none:1`],
    ['REGISTRY_UNREACHABLE', () => 'registry.example.org/team/tools:1'],
    [
      'IMAGE_DAMAGED',
      () => {
        const { name, image, repository } = put([]);
        registry.answer(new RegExp(`${repository}/blobs/${[...image.blobs.keys()].at(-1)}`), 200, 'else');
        return name;
      },
    ],
  ])(
    'A build fails with %s',
    async (code, nameOf) => {
      const { id } = await environments.make({ name: code.toLowerCase().replaceAll('_', '-'), base: nameOf() });
      const failed = await environments.built(id);
      expect(failed).toMatchObject({ status: 'failed', readyVersion: null, latest: { error: { code } } });
      expect(failed.latest.error?.detail).not.toBe('');
      expect((await environments.send('DELETE', `/${id}`)).status).toBe(204);
      await buildersToGo();
    },
    600_000,
  );

  test('Another registry is refused, and another tenant finds nothing', async () => {
    const refused = await environments.send('POST', '', { name: 'a', base: 'other.example.org/a:1' });
    expect(await refused.json()).toMatchObject({
      status: 422,
      code: 'IMAGE_REGISTRY_NOT_ALLOWED',
      errors: [{ pointer: '/base', detail: expect.stringContaining('ATRIUM_IMAGE_REGISTRIES') }],
    });
    const { name } = put([]);
    const { id } = await environments.make({ name: 'own', base: name });
    const stranger = await atrium.user();
    const theirs = environmentsOf(stranger);
    expect((await theirs.send('GET', `/${id}`)).status).toBe(404);
    expect((await theirs.send('POST', `/${id}/build`)).status).toBe(404);
    expect((await environments.built(id)).status).toBe('ready');
  }, 600_000);

  test('A build that needs a computer is refused where the space may have no other', async () => {
    const { name } = put([]);
    const { id } = await environments.make({ name: 'known', base: name });
    await environments.built(id);
    await buildersToGo();
    const made: string[] = [];
    for (;;) {
      const response = await user.fetch(computers(), { method: 'POST', body: {} });
      if (response.status !== 201) break;
      made.push(((await response.json()) as { id: string }).id);
    }
    const based = { name: 'full', base: id, steps: [{ run: 'true' }] };
    const refused = await environments.send('POST', '', based);
    expect(await refused.json()).toMatchObject({ status: 409, code: 'TOO_MANY_COMPUTERS', limit: 2, used: 2 });
    // Without steps, nothing needs to run.
    const { id: plain } = await environments.make({ name: 'full', base: id });
    expect((await environments.built(plain)).status).toBe('ready');
    for (const computerId of made) await user.fetch(`${computers()}/${computerId}`, { method: 'DELETE' });
  }, 600_000);

  test('A build goes on when its worker is killed while the image is fetched', async () => {
    const { name, image, repository } = put([{ name: 'srv/a', content: Buffer.alloc(1_000_000) }]);
    const layer = [...image.blobs.keys()].at(-1) ?? '';
    registry.hang(new RegExp(`${repository}/blobs/${layer}`), 'midway');
    const { id } = await environments.make({ name: 'killed', base: name, steps: [{ run: 'ls /srv' }] });
    await waitFor('the layer', () => registry.requests.some((path) => path.endsWith(layer)));
    await host.restart();
    registry.release();
    expect(await environments.built(id)).toMatchObject({ status: 'ready', latest: { error: null } });
    expect(await environments.log(id)).toMatch(/\na\n$/);
    expect(pidsWith('skopeo', repository)).toEqual([]);
  }, 600_000);
}
