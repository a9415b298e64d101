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
    servingComputer(environment, { spaceId, environment: name, actor }),
  );
  const [first, ...others] = await Promise.all(asked);
  expect(first).toMatchObject({ name: 'tools', environmentVersionId: made.versionId, homeSaveId: made.saveId });
  for (const other of others) expect(other.id).toBe(first?.id);
  expect((await listComputers(database, spaceId, { limit: 10 })).data).toHaveLength(2);
  const environmentId = made.id;
  expect((await chosenComputer(environment, { spaceId, environmentId, actor })).id).toBe(first?.id);
  const computerId = first?.id ?? '';
  expect(await isOfEnvironment(database, { spaceId, computerId, environment: 'tools' })).toBe(true);
});

test('There is another one once that was deleted, or was given another system', async () => {
  const { database, spaceId, actor, made, user } = await build();
  const ask = async () => (await servingComputer(environment, { spaceId, environment: 'tools', actor })).id;
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

/** Settings with so few computers for a space. */
function configWith(computers: number, diskMiB = 1e9) {
  const { config } = environment;
  const perSpace = { ...config.computers.perSpace, computers, diskMiB };
  return { ...config, computers: { ...config.computers, perSpace } };
}

test('A space has one for each environment beside its quota, also if each gets another system or its environment goes', async () => {
  const { database, spaceId, actor, user } = await build();
  const of = { spaceId, createdBy: user.id };
  const other = await insertReadyEnvironment(database, of);
  const deps = { database, config: configWith(1) }; // the default computer
  const ask = (name: string) => servingComputer(deps, { spaceId, environment: name, actor });
  const rounds = async (each: () => Promise<unknown>) => {
    const codes = [];
    for (let round = 0; round < 5; round += 1) {
      const [made] = await Promise.allSettled([ask('tools'), ask('tools')]);
      codes.push(made.status === 'fulfilled' ? 'made' : made.reason.code);
      if (made.status === 'fulfilled') await each();
    }
    return codes.join(' ');
  };
  const give = 'UPDATE computers SET environment_version_id = ? WHERE space_id = ? AND default_of IS NULL';
  const refused = (times: number) => 'TOO_MANY_COMPUTERS '.repeat(times).trim();
  expect(await rounds(() => database.pool.query(give, [other.versionId, spaceId]))).toBe(`made made ${refused(3)}`);
  await expect(ask(other.id)).rejects.toMatchObject({ code: 'TOO_MANY_COMPUTERS', kind: 'conflict' });
  // Deleted environments make room for others, and their computers stay.
  for (let round = 0; round < 5; round += 1) {
    await database.pool.query('UPDATE environments SET deleted_at = NOW(3) WHERE space_id = ?', [spaceId]);
    const ids = [await insertReadyEnvironment(database, of), await insertReadyEnvironment(database, of)];
    for (const { id } of ids) await expect(ask(id)).rejects.toMatchObject({ code: 'TOO_MANY_COMPUTERS' });
  }
  expect((await listComputers(database, spaceId, { limit: 10 })).data).toHaveLength(3);
  // An environment that another space shares is one that it may have a computer for.
  const owner = await build();
  const shared = await insertReadyEnvironment(database, { spaceId: owner.spaceId, createdBy: owner.user.id });
  await database.pool.query('UPDATE environments SET shared_at = NOW(3) WHERE id = ?', [shared.id]);
  expect(await ask(shared.id)).toMatchObject({ environmentVersionId: shared.versionId });
  // All spaces would count it.
  await database.pool.query('UPDATE environments SET shared_at = NULL WHERE id = ?', [shared.id]);
});

test('A further one needs room for a computer and its disk', async () => {
  const { database, spaceId, actor, made } = await build();
  const ask = (config: ReturnType<typeof configWith>) =>
    servingComputer({ database, config }, { spaceId, environment: 'tools', actor });
  const first = await ask(configWith(1));
  // It is the same one although the space has too many.
  expect((await ask(configWith(1))).id).toBe(first.id);
  await database.pool.query('UPDATE computers SET environment_version_id = NULL WHERE id = ?', [first.id]);
  await expect(ask(configWith(2))).rejects.toMatchObject({ code: 'TOO_MANY_COMPUTERS', quota: { limit: 2, used: 2 } });
  await expect(ask(configWith(3, 1))).rejects.toMatchObject({ code: 'TOO_MUCH_DISK' });
  expect(await ask(configWith(3))).toMatchObject({ environmentVersionId: made.versionId });
});

test('An unknown environment, one of another space and one that is not ready are refused', async () => {
  const { database, spaceId, actor, made } = await build();
  const unknown = { code: 'ENVIRONMENT_UNKNOWN', kind: 'notFound' };
  await expect(servingComputer(environment, { spaceId, environment: 'nothing', actor })).rejects.toMatchObject(unknown);
  const elsewhere = await build();
  const ofOther = { spaceId: elsewhere.spaceId, environment: made.id, actor };
  await expect(servingComputer(environment, ofOther)).rejects.toMatchObject(unknown);
  await database.pool.query("UPDATE environment_versions SET status = 'failed' WHERE id = ?", [made.versionId]);
  await expect(servingComputer(environment, { spaceId, environment: 'tools', actor })).rejects.toMatchObject({
    code: 'ENVIRONMENT_NOT_READY',
  });
  const both = { spaceId, computerId: newId('computer'), environmentId: made.id, actor };
  await expect(chosenComputer(environment, both)).rejects.toMatchObject({ code: 'COMPUTER_AMBIGUOUS' });
});
