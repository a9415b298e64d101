import { newId } from '../../../base/ids.ts';
import { transaction } from '../../../models/database/database.ts';
import { makeFolder } from '../../../models/drive/changes.ts';
import { driveContainerId } from '../../../models/drive/containers.ts';
import { cancelBuild, nextOfBuild } from '../../../models/environments/builds/builds.ts';
import { planOfStep } from '../../../models/environments/builds/stepRows.ts';
import { buildAgain, createEnvironment } from '../../../models/environments/environment.ts';
import type { EnvironmentStep } from '../../../models/environments/steps.ts';
import { reportTestHost } from '../../builders/computerRows.ts';
import { fillFolder } from '../../builders/driveRows.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// What the steps of a build copy from the drive: how much it may be, and that it belongs to the definition that is built.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
  await reportTestHost(environment, { id: newId('computerHost'), bases: ['debian'] });
});
afterAll(() => environment.close());

async function build() {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const spaceId = space.id;
  const actor = { userId: user.id, credentialId: null, address: null };

  /** A folder in the drive with files, or with folders. */
  async function folder(name: string, count: number, kind: 'file' | 'folder' = 'file', names: string[] = []) {
    const id = newId('driveItem');
    const at = { spaceId, containerId: driveContainerId, userId: user.id, parent: { names } };
    await makeFolder(database, { ...at, id, name, onConflict: 'error' });
    if (count > 0) await fillFolder(database, { id, spaceId }, count, { kind, idPrefix: `${id}_` });
    const sql = "UPDATE drive_items SET object_key = id, size = 1000 WHERE parent_id = ? AND kind = 'file'";
    await database.pool.query(sql, [id]);
  }

  async function make(steps: EnvironmentStep[]) {
    const [id, versionId] = [newId('environment'), newId('environmentVersion')];
    const definition = { base: 'debian', steps, warnings: [] };
    await createEnvironment(environment, { id, versionId, spaceId, name: id.toLowerCase(), definition, actor });
    return { id, versionId };
  }
  return { spaceId, actor, folder, make };
}

const copy = (from: string): EnvironmentStep => ({ copy: { from, to: '/to/' } });

test('All steps of a definition together copy so much and no more', async () => {
  const { folder, make } = await build();
  await folder('many', 4_000);
  const { versionId } = await make([copy('/many'), copy('/many')]);
  expect(Object.keys((await planOfStep(environment.database.pool, { versionId, number: 2 })).files)).toHaveLength(
    4_000,
  );
  await expect(make([copy('/many'), copy('/many'), copy('/many')])).rejects.toMatchObject({
    code: 'ENVIRONMENT_FILE_UNKNOWN',
    message: expect.stringContaining('all steps together can copy at most 10000 files and 1024 MiB'),
    errors: [{ pointer: '/steps/2/copy/from' }],
  });
}, 120_000);

test('A folder is copied with so many folders, and with paths of so many bytes', async () => {
  const { spaceId, folder, make } = await build();
  await folder('empty', 5_001, 'folder');
  await expect(make([copy('/empty')])).rejects.toMatchObject({
    message: expect.stringContaining('a folder can have at most 5000 folders'),
  });
  const deep = 'f'.repeat(250);
  await folder(deep, 4_500, 'file', ['outer']);
  const longer = `UPDATE drive_items SET name = CONCAT(name, REPEAT('e', 240)), name_key = CONCAT(name_key, REPEAT('e', 240))
    WHERE space_id = ? AND name LIKE 'file %'`;
  await environment.database.pool.query(longer, [spaceId]);
  await make([copy(`/outer/${deep}`)]);
  await expect(make([copy('/outer')])).rejects.toMatchObject({
    message: expect.stringContaining('a folder can have paths of 2 MiB together'),
  });
}, 120_000);

test('A build of a definition that is changed meanwhile copies the files of that', async () => {
  const { spaceId, actor, folder, make } = await build();
  await folder('before', 1);
  await folder('after', 2);
  const { id, versionId } = await make([copy('/before')]);
  await cancelBuild(environment, versionId);
  const again = newId('environmentVersion');
  const { database } = environment;
  let built: Promise<unknown> = Promise.resolve();
  await transaction(database, async (tx) => {
    // The build lists its files, and waits for the space.
    await database.sequelize.query('SELECT id FROM spaces WHERE id = ? FOR UPDATE', {
      replacements: [spaceId],
      transaction: tx,
    });
    const listed = watchLists();
    built = buildAgain(environment, { spaceId, environmentId: id, versionId: again, withoutCache: false, actor });
    await listed;
    const steps = JSON.stringify([copy('/after')]);
    await database.sequelize.query('UPDATE environments SET steps = ? WHERE id = ?', {
      replacements: [steps, id],
      transaction: tx,
    });
  });
  await built;
  const { plan, files } = await planOfStep(database.pool, { versionId: again, number: 1 });
  expect(plan.step).toMatchObject({ copy: { from: '/after' } });
  expect(Object.keys(files)).toEqual(['file 0', 'file 1']);

  /** Until the files below a folder have been listed. */
  function watchLists(): Promise<void> {
    return new Promise((resolve) => {
      const { query } = database.sequelize;
      const spy = jest.spyOn(database.sequelize, 'query').mockImplementation(((...args: Parameters<typeof query>) => {
        const asked = query.apply(database.sequelize, args as never);
        const sql = typeof args[0] === 'string' ? args[0] : (args[0] as { query: string }).query;
        if (!sql.includes('drive_items')) return asked;
        return Promise.resolve(asked).finally(() => {
          if (!sql.includes('parent_id')) return;
          spy.mockRestore();
          resolve();
        });
      }) as never);
    });
  }
});

test('A build that has ended leaves neither plans nor lists of files', async () => {
  const { folder, make } = await build();
  await folder('files', 2);
  const { versionId } = await make([copy('/files'), { run: 'true' }]);
  await nextOfBuild(environment, versionId);
  const rows = async () => {
    const sql = 'SELECT plan, files FROM environment_steps WHERE version_id = ? ORDER BY number';
    return (await environment.database.pool.query(sql, [versionId]))[0] as { plan: string; files: string | null }[];
  };
  expect((await rows()).map(({ files }) => files !== null)).toEqual([false, true, false]);
  await cancelBuild(environment, versionId);
  expect(await rows()).toEqual(Array(3).fill({ plan: '', files: null }));
  await expect(planOfStep(environment.database.pool, { versionId, number: 1 })).rejects.toMatchObject({
    kind: 'notFound',
  });
});
