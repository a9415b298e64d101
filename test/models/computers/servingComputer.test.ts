import { newId } from '../../../base/ids.ts';
import { listComputers } from '../../../models/computers/computer.ts';
import { chosenComputer, isOfEnvironment, servingComputer } from '../../../models/computers/servingComputer.ts';
import { insertReadyEnvironment } from '../../builders/environmentRows.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The computer of a space that requests mean which name only an environment.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

async function build() {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const spaceId = space.id;
  const actor = { userId: user.id, credentialId: null, address: null };
  const made = await insertReadyEnvironment(database, { spaceId, createdBy: user.id }, { name: 'tools' });
  return { database, spaceId, actor, user, made };
}

test('An environment has one such computer, however many ask at once', async () => {
  const { database, spaceId, actor, made } = await build();
  const asked = ['tools', made.id, 'tools', 'tools'].map((name) =>
    servingComputer(database, { spaceId, environment: name, actor }),
  );
  const [first, ...others] = await Promise.all(asked);
  expect(first).toMatchObject({ name: 'tools', environmentVersionId: made.versionId, homeSaveId: made.saveId });
  for (const other of others) expect(other.id).toBe(first?.id);
  expect((await listComputers(database, spaceId, { limit: 10 })).data).toHaveLength(2);
  const environmentId = made.id;
  expect((await chosenComputer(database, { spaceId, environmentId, actor })).id).toBe(first?.id);
  const computerId = first?.id ?? '';
  expect(await isOfEnvironment(database, { spaceId, computerId, environment: 'tools' })).toBe(true);
});

test('There is another one once that was deleted, or was given another system', async () => {
  const { database, spaceId, actor, made, user } = await build();
  const ask = async () => (await servingComputer(database, { spaceId, environment: 'tools', actor })).id;
  const first = await ask();
  const other = await insertReadyEnvironment(database, { spaceId, createdBy: user.id });
  const set = 'UPDATE computers SET environment_version_id = ? WHERE id = ?';
  await database.pool.query(set, [other.versionId, first]);
  const second = await ask();
  expect(second).not.toBe(first);
  expect(await isOfEnvironment(database, { spaceId, computerId: first, environment: made.id })).toBe(false);
  await database.pool.query('UPDATE computers SET deleted_at = NOW(3) WHERE id = ?', [second]);
  expect([first, second]).not.toContain(await ask());
});

test('An unknown environment, one of another space and one that is not ready are refused', async () => {
  const { database, spaceId, actor, made } = await build();
  const unknown = { code: 'ENVIRONMENT_UNKNOWN', kind: 'notFound' };
  await expect(servingComputer(database, { spaceId, environment: 'nothing', actor })).rejects.toMatchObject(unknown);
  const elsewhere = await build();
  const ofOther = { spaceId: elsewhere.spaceId, environment: made.id, actor };
  await expect(servingComputer(database, ofOther)).rejects.toMatchObject(unknown);
  await database.pool.query("UPDATE environment_versions SET status = 'failed' WHERE id = ?", [made.versionId]);
  await expect(servingComputer(database, { spaceId, environment: 'tools', actor })).rejects.toMatchObject({
    code: 'ENVIRONMENT_NOT_READY',
  });
  const both = { spaceId, computerId: newId('computer'), environmentId: made.id, actor };
  await expect(chosenComputer(database, both)).rejects.toMatchObject({ code: 'COMPUTER_AMBIGUOUS' });
});
