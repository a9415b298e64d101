import { newId } from '../../../base/ids.ts';
import { imageNameOf } from '../../../base/imageNames.ts';
import { findComputer } from '../../../models/computers/computer.ts';
import { createComputers } from '../../../models/computers/computers.ts';
import { reportHost } from '../../../models/computers/hosts.ts';
import { nextOfBuild } from '../../../models/environments/builds/builds.ts';
import { imageToResolve, noteImage } from '../../../models/environments/builds/resolving.ts';
import { noteStepBegun, noteStepEnd } from '../../../models/environments/builds/runningSteps.ts';
import { keepStep, stepToSave } from '../../../models/environments/builds/savedSteps.ts';
import { buildAgain, createEnvironment, updateEnvironment } from '../../../models/environments/environment.ts';
import { beginWith, type ResolvedImage } from '../../../models/environments/images.ts';
import type { EnvironmentStep } from '../../../models/environments/steps.ts';
import { builderOf, findVersion } from '../../../models/environments/version.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

const registry = 'registry.example.org';
const image = `${registry}/team/tools:1`;
const digestOf = (letter: string) => `sha256:${letter.repeat(64)}`;
const plain = { env: [], workdir: '', user: '', starts: [] };
const name = imageNameOf(image);
if (name === undefined) throw new Error('The name of the image is wrong.');

describe('what an image says of processes', () => {
  const begin = (config: Partial<ResolvedImage['config']>) =>
    beginWith(name, { digest: digestOf('a'), config: { ...plain, ...config } });

  test('becomes the first steps', () => {
    const said = { env: ['PATH=/opt/bin:/bin', 'EMPTY=', 'A=b=c'], workdir: '/srv/app', user: 'app:staff' };
    expect(begin({ ...said, starts: ['ENTRYPOINT', 'CMD'] })).toEqual({
      image: `${registry}/team/tools@${digestOf('a')}`,
      origin: `image ${digestOf('a')}`,
      steps: [{ env: { PATH: '/opt/bin:/bin', EMPTY: '', A: 'b=c' } }, { workdir: '/srv/app' }, { user: 'app:staff' }],
      warnings: ['The image’s ENTRYPOINT has no meaning here.', 'The image’s CMD has no meaning here.'],
    });
    expect(begin({ workdir: 'srv/../app/', user: '1000' }).steps).toEqual([{ workdir: '/app' }, { user: '1000' }]);
    expect(begin({ workdir: '/' })).toMatchObject({ steps: [], warnings: [] });
  });

  test.each([
    ['variables that load code', { env: ['LD_PRELOAD=/a.so', 'BASH_ENV=/a'] }, 2],
    ['variables of another form', { env: ['no value', '1=2', 'A=\0', `A=${'\ud800'}`] }, 4],
    ['too many variables', { env: ['A=1', `B=${'x'.repeat(40_000)}`] }, 1],
    ['a folder of another form', { workdir: '/a\nb' }, 1],
    ['a long folder', { workdir: `/${'a'.repeat(2_000)}` }, 1],
    ['a user of another form', { user: 'Some One' }, 1],
  ])('is left out: %s', (_what, config, count) => {
    const { steps, warnings } = begin(config);
    expect(warnings).toHaveLength(count);
    expect(warnings.every((text) => text.length <= 500)).toBe(true);
    expect(JSON.stringify(steps)).not.toMatch(/LD_PRELOAD|BASH_ENV|xxx|user|workdir/);
  });
});

describe('the rows of builds from images', () => {
  let environment: TestEnvironment;
  let hostId: string;
  beforeAll(async () => {
    environment = await createTestEnvironment({ ATRIUM_IMAGE_REGISTRIES: `${registry},other.example.org:5000` });
  });
  afterAll(() => environment.close());
  beforeEach(async () => {
    await environment.database.pool.query('DELETE FROM computer_hosts');
    hostId = newId('computerHost');
    await report(['debian', 'image']);
  });

  const report = (bases: ('debian' | 'image')[]) =>
    reportHost(environment.database, {
      id: hostId,
      address: null,
      drivers: ['bubblewrap'],
      bases,
      cpuMilli: 2_000,
      memoryMiB: 8_192,
      maxRunning: 9,
    });

  async function build() {
    const { database, config } = environment;
    const identity = await buildIdentity(environment);
    const { user } = await buildUser(identity);
    const { space } = await buildSpace(identity, user.id);
    const spaceId = space.id;
    const actor = { userId: user.id, credentialId: null, address: null };
    const computers = createComputers(database, await openEnvelope(database, config), config);
    const next = (versionId: string) => nextOfBuild(environment, versionId);
    const builder = (versionId: string) => findComputer(database, builderOf({ id: versionId, spaceId }).computerId);

    async function make(base: string, steps: EnvironmentStep[] = [{ run: 'one' }]) {
      const [id, versionId] = [newId('environment'), newId('environmentVersion')];
      const definition = { base, steps, warnings: [] };
      await createEnvironment(environment, { id, versionId, spaceId, name: id.toLowerCase(), definition, actor });
      return { id, versionId };
    }
    const version = async (versionId: string) => {
      const found = await findVersion(database.pool, versionId);
      if (found === undefined) throw new Error(`There is no version ${versionId}.`);
      return found;
    };
    const again = async (environmentId: string) => {
      const versionId = newId('environmentVersion');
      await buildAgain(environment, { spaceId, environmentId, versionId, withoutCache: false, actor });
      return versionId;
    };
    /** Walks through a build. The registry says this digest. Returns the numbers of the steps that ran. */
    async function walk(versionId: string, digest: string, config: Partial<ResolvedImage['config']> = {}) {
      const ran: number[] = [];
      for (;;) {
        const step = await next(versionId);
        if (step.do === 'rest') return ran;
        if (step.do === 'resolve') {
          await noteImage(database, versionId, { digest, config: { ...plain, ...config } });
          continue;
        }
        const { number } = step;
        const { computerId } = builderOf({ id: versionId, spaceId });
        if (step.do === 'run') {
          ran.push(number);
          const sql = "UPDATE computers SET host_id = ?, status = 'running', generation = 1 WHERE id = ?";
          await database.pool.query(sql, [hostId, computerId]);
          await noteStepBegun(environment, { versionId, number, generation: 1 });
          const end = { exitCode: 0, logBytes: 0, sealedLog: null, sealedTail: null };
          await noteStepEnd(environment, { versionId, number }, end);
        } else {
          expect(await stepToSave(database, versionId, number)).toBe(computerId);
          const row = saveRow({ spaceId, computerId });
          await insertRows(database, { home_saves: row });
          await database.pool.query('UPDATE computers SET home_save_id = ? WHERE id = ?', [row.id, computerId]);
          await keepStep(database, { versionId, number, hostId });
        }
      }
    }
    return { spaceId, actor, computers, make, next, version, again, walk, builder };
  }

  test('A build asks what its image is, and then depends on that content only', async () => {
    const { make, next, version, walk, builder, computers } = await build();
    const { database } = environment;
    const { versionId } = await make(image);
    expect(await next(versionId)).toEqual({ do: 'resolve', hostId });
    expect(await next(versionId)).toEqual({ do: 'resolve', hostId });
    expect(await imageToResolve(database, versionId)).toBe(image);
    expect(await builder(versionId)).toBeUndefined();
    const said = { env: ['A=1'], workdir: '/srv', user: 'app', starts: ['CMD'] };
    const resolved = { digest: digestOf('a'), config: said };
    // A second worker may note the same.
    await Promise.all([noteImage(database, versionId, resolved), noteImage(database, versionId, resolved)]);
    await noteImage(database, versionId, { digest: digestOf('b'), config: plain });
    expect(await imageToResolve(database, versionId)).toBeUndefined();
    expect(await version(versionId)).toMatchObject({
      image: `${registry}/team/tools@${digestOf('a')}`,
      steps: [{ env: { A: '1' } }, { workdir: '/srv' }, { user: 'app' }, { run: 'one' }],
      warnings: [expect.stringContaining('CMD')],
      env: { A: '1' },
      workdir: '/srv',
      user: 'app',
    });
    expect(await next(versionId)).toEqual({ do: 'run', number: 0 });
    const made = await builder(versionId);
    expect(made).toMatchObject({ base: 'debian', image: `${registry}/team/tools@${digestOf('a')}` });
    expect(made && (await computers.orderOf(made))).toMatchObject({ base: 'debian', image: made?.image });
    expect(await walk(versionId, '')).toEqual([0, 2, 3, 4]);
    // A computer with a save begins with that.
    const later = { ...made, homeSaveId: 'hsv_1' } as NonNullable<typeof made>;
    expect(await computers.orderOf(later)).not.toHaveProperty('image');
  });

  test('The same content is not fetched again by a space, whatever names it', async () => {
    const { make, walk, version, again } = await build();
    const first = await make(image);
    expect(await walk(first.versionId, digestOf('a'))).toEqual([0, 1]);
    expect(await walk(await again(first.id), digestOf('a'))).toEqual([]);
    const other = await make('other.example.org:5000/x:2');
    expect(await walk(other.versionId, digestOf('a'))).toEqual([]);
    expect((await version(other.versionId)).image).toBe(`other.example.org:5000/x@${digestOf('a')}`);
    // The tag has moved.
    const moved = await again(first.id);
    expect(await walk(moved, digestOf('b'))).toEqual([0, 1]);
    const stranger = await build();
    expect(await stranger.walk((await stranger.make(image)).versionId, digestOf('a'))).toEqual([0, 1]);
  });

  test('Variables of the environment replace those of the image', async () => {
    const { make, version, again } = await build();
    const { database } = environment;
    const { versionId, id } = await make(image, [{ env: { B: '2' } }]);
    await noteImage(database, versionId, { digest: digestOf('a'), config: { ...plain, env: ['B=1', 'C=3'] } });
    expect((await version(versionId)).env).toEqual({ B: '2', C: '3' });
    await expect(again(id)).rejects.toMatchObject({ code: 'ENVIRONMENT_BUILDING' });
  });

  test('A registry that the operator does not allow is refused, also once it is no longer allowed', async () => {
    const { make, actor, spaceId } = await build();
    const refused = { code: 'IMAGE_REGISTRY_NOT_ALLOWED', message: expect.stringContaining('ATRIUM_IMAGE_REGISTRIES') };
    for (const base of ['elsewhere.example.org/a:1', `${registry}:5000/a`]) {
      await expect(make(base)).rejects.toMatchObject(refused);
    }
    await expect(make('team/tools:1')).rejects.toMatchObject({ code: 'ENVIRONMENT_BASE_UNKNOWN' });
    const { id } = await make(image);
    const images = { ...environment.config.environments.images, registries: [] };
    const config = { ...environment.config, environments: { ...environment.config.environments, images } };
    const definition = { base: image, steps: [], warnings: [] };
    const update = updateEnvironment({ ...environment, config }, { spaceId, environmentId: id, definition, actor });
    await expect(update).rejects.toMatchObject({ code: 'IMAGE_REGISTRY_NOT_ALLOWED' });
  });

  test('Images are built only where a host takes them', async () => {
    const { make, next, version } = await build();
    const { versionId } = await make(image);
    await report(['debian']);
    await expect(make(image)).rejects.toMatchObject({
      code: 'ENVIRONMENTS_UNAVAILABLE',
      message: expect.stringContaining('registries'),
    });
    expect(await next(versionId)).toMatchObject({ do: 'rest', badEnd: { code: 'ENVIRONMENTS_UNAVAILABLE' } });
    expect(await version(versionId)).toMatchObject({ status: 'failed' });
    await make('debian');
  });
});
