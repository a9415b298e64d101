import { newId } from '../../../base/ids.ts';
import { findProfile } from '../../../models/browsers/profile.ts';
import { endBrowser, keepSave } from '../../../models/browsers/saves.ts';
import { type BrowserSession, findBrowser } from '../../../models/browsers/session.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { browserRow, profileRow } from '../../builders/browserRows.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
/** Any hash will do, because no test reads the content. */
const sha256 = Buffer.alloc(32, 1);

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

/** A profile that its first session has saved, and two later sessions of the profile. */
async function setUp() {
  const { config, database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const spaceId = (await buildSpace(identity, user.id)).space.id;
  const owner = { spaceId, computerId: newId('computer'), createdBy: user.id };
  const first = await object(spaceId);
  await driveModels(database).DriveObject.update({ state: 'kept' }, { where: { objectKey: first } });
  const profile = { ...profileRow(owner), opened: 3, saved: 1, object_key: first, size_bytes: 5 };
  await insertRows(database, { browser_profiles: profile });
  const profileId = String((profile as Record<string, unknown>).id);
  const session = async (number: number, more: Record<string, unknown>) => {
    const row = { ...browserRow(owner), profile_id: profileId, number, ...more };
    await insertRows(database, { browser_sessions: row });
    return (await findBrowser(database, String((row as Record<string, unknown>).id))) as BrowserSession;
  };
  const late = await session(2, {});
  const live = await session(3, { status: 'saving', live_profile: profileId });

  async function object(of: string): Promise<string> {
    const objectKey = newId('process');
    const { quotaBytes } = config.drive;
    await driveModels(database).DriveObject.begin(database, { objectKey, spaceId: of, bytes: 10, quotaBytes });
    return objectKey;
  }
  const stateOf = async (objectKey: string) =>
    (await driveModels(database).DriveObject.findByPk(objectKey, { rejectOnEmpty: true })).state;
  return { database, profileId, first, late, live, object: () => object(spaceId), stateOf };
}

test('A save replaces the one before it and ends its session', async () => {
  const { database, profileId, first, live, object, stateOf } = await setUp();
  const objectKey = await object();
  await keepSave(database, live, { objectKey, sizeBytes: 10, sha256 });
  expect(await findProfile(database, profileId)).toMatchObject({ saved: 3, objectKey, sizeBytes: 10 });
  expect([await stateOf(first), await stateOf(objectKey)]).toEqual(['doomed', 'kept']);
  expect(await findBrowser(database, live.id)).toMatchObject({ status: 'ended', saveCode: null });

  // A second worker that saves the same session is too late.
  const again = await object();
  const twice = keepSave(database, live, { objectKey: again, sizeBytes: 10, sha256 });
  await expect(twice).rejects.toMatchObject({ code: 'PROFILE_OVERTAKEN' });
  expect([await stateOf(objectKey), await stateOf(again)]).toEqual(['kept', 'arriving']);
});

test('A late save of an earlier session is refused', async () => {
  const { database, profileId, first, late, object, stateOf } = await setUp();
  const objectKey = await object();
  const saved = keepSave(database, late, { objectKey, sizeBytes: 10, sha256 });
  await expect(saved).rejects.toMatchObject({ code: 'PROFILE_OVERTAKEN' });
  expect(await findProfile(database, profileId)).toMatchObject({ saved: 1, objectKey: first });
  expect([await stateOf(first), await stateOf(objectKey)]).toEqual(['kept', 'arriving']);
});

test('A save whose object was given up meanwhile changes nothing', async () => {
  const { database, profileId, first, live, object, stateOf } = await setUp();
  const objectKey = await object();
  await driveModels(database).DriveObject.giveUp([objectKey]);
  await expect(keepSave(database, live, { objectKey, sizeBytes: 10, sha256 })).rejects.toMatchObject({
    code: 'UPLOAD_EXPIRED',
  });
  expect(await findProfile(database, profileId)).toMatchObject({ saved: 1, objectKey: first });
  expect([await stateOf(first), (await findBrowser(database, live.id))?.status]).toEqual(['kept', 'saving']);
});

test('The end of an earlier session does not take the profile from the live session', async () => {
  const { database, late, live } = await setUp();
  await endBrowser(database, late, 'HOST_LOST');
  expect(await findBrowser(database, live.id)).toMatchObject({ status: 'saving', saveCode: null });
});
