import { driveModels } from '../../../models/drive/models.ts';
import { removeDoomed, removeObjects } from '../../../models/drive/removeObjects.ts';
import { holdForBackup, isHeldForBackup } from '../../../models/installation/backupHold.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, runStatement, type TestEnvironment } from '../../support/environment.ts';
import { waitFor } from '../../support/waitFor.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

/** An object that nothing refers to, in a space that still exists. */
async function doomedObject(objectKey: string): Promise<string> {
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const { DriveObject } = driveModels(environment.database);
  const times = { leaseExpiresAt: null, createdAt: new Date() };
  await DriveObject.create({ objectKey, spaceId: space.id, state: 'doomed', isComplete: true, size: 1, ...times });
  return space.id;
}

test('Doomed objects stay in the store during a backup and are removed after it', async () => {
  const { database } = environment;
  const spaceId = await doomedObject('doomed');
  const removed: string[] = [];
  const deps = {
    database,
    store: {
      async remove(keys: readonly string[]) {
        removed.push(...keys);
        return [];
      },
    },
  };
  const { DriveObject } = driveModels(database);
  const hold = await holdForBackup(database);
  expect(await removeDoomed(deps)).toEqual({ removed: 0, refused: 0 });
  expect(await removeDoomed(deps, { spaceId })).toEqual({ removed: 0, refused: 0 });
  await removeObjects(deps, await DriveObject.findAll({ where: { objectKey: 'doomed' } }));
  expect(removed).toEqual([]);
  expect(await DriveObject.findByPk('doomed')).not.toBeNull();
  await hold.assertHeld();
  await hold[Symbol.asyncDispose]();
  await waitFor('the lock to be free', async () => !(await isHeldForBackup(database)));
  expect(await removeDoomed(deps)).toEqual({ removed: 1, refused: 0 });
  expect(removed).toEqual(['doomed']);
  expect(await DriveObject.findByPk('doomed')).toBeNull();
});

test('Only one backup runs at a time, and a backup that loses its connection loses its hold', async () => {
  const { database } = environment;
  const hold = await holdForBackup(database);
  await expect(holdForBackup(database)).rejects.toMatchObject({ code: 'BACKUP_UNDER_WAY' });
  const [rows] = await database.pool.query(
    "SELECT IS_USED_LOCK(CONCAT('atrium_backup_', LEFT(SHA2(DATABASE(), 256), 40))) AS owner",
  );
  await runStatement(
    environment.environment.ATRIUM_DATABASE_URL,
    `KILL ${Number((rows as { owner: number }[])[0]?.owner)}`,
  );
  await waitFor('the lock to be free', async () => !(await isHeldForBackup(database)));
  await expect(hold.assertHeld()).rejects.toThrow();
  await hold[Symbol.asyncDispose]();
  await (await holdForBackup(database))[Symbol.asyncDispose]();
});
