import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createIdentity, openEnvelope, rotateKeys } from '../../../models/identity/index.ts';
import { createSecretStore } from '../../../models/secrets/index.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';
import { startAtrium } from '../../support/atrium.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { waitFor } from '../../support/waitFor.ts';

const address = null;
const newKey = () => randomBytes(32).toString('base64');
let environment: TestEnvironment;

beforeEach(async () => {
  // The master key is a file in the data directory.
  environment = await createTestEnvironment({ ATRIUM_MASTER_KEY: '' });
});
afterEach(() => environment.close());

/** The view of one process: its own keys in memory, over the same database. */
async function open(overrides: Partial<TestEnvironment['config']> = {}) {
  const { database, config } = environment;
  const envelope = await openEnvelope(database, { ...config, ...overrides });
  return { identity: createIdentity(database, envelope, config), secrets: createSecretStore(database, envelope) };
}

async function spacesWithSecrets(count: number) {
  const process = await open();
  const { user } = await buildUser(process.identity);
  const actor = { userId: user.id, credentialId: null, address };
  const spaceIds: string[] = [];
  for (let index = 0; index < count; index++) {
    const { space } = await buildSpace(process.identity, user.id);
    await process.secrets.named.put(space.id, 'A', `value-${index}`, actor);
    spaceIds.push(space.id);
  }
  return { process, actor, spaceIds };
}

async function masterKeyIds(): Promise<string[]> {
  const [rows] = await environment.database.pool.query('SELECT DISTINCT master_key_id AS id FROM data_keys');
  return (rows as { id: string }[]).map(({ id }) => id);
}

test('Keys are rotated under readers and writers, and none of them fails', async () => {
  const { process, actor, spaceIds } = await spacesWithSecrets(8);
  const other = await open();
  const [before] = await masterKeyIds();
  let stop = false;
  let reads = 0;
  const readAndWrite = async ({ secrets }: typeof process) => {
    for (let turn = 0; !stop; turn++) {
      const index = turn % spaceIds.length;
      const spaceId = spaceIds[index] ?? '';
      expect((await secrets.named.readAll(spaceId, actor)).find(({ name }) => name === 'A')?.value).toBe(
        `value-${index}`,
      );
      await secrets.named.put(spaceId, 'B', String(turn), actor);
      reads += 1;
      // A process that has just started knows no key yet.
      if (turn % 5 === 0) await (await open()).secrets.named.readAll(spaceId, actor);
    }
  };
  const traffic = [readAndWrite(process), readAndWrite(other)];
  for (let round = 0; round < 3; round++) {
    const report = await rotateKeys(environment.database, environment.config);
    expect(await masterKeyIds()).toEqual([report.masterKeyId]);
    const seen = reads;
    await waitFor('more traffic', () => Promise.resolve(reads > seen + 10));
  }
  stop = true;
  await Promise.all(traffic);
  expect(await masterKeyIds()).not.toContain(before);
  const { dataDir } = environment.config;
  expect(
    readdirSync(dataDir)
      .filter((name) => name.startsWith('master.key'))
      .sort(),
  ).toEqual(['master.key', 'master.key.previous']);
  for (const name of ['master.key', 'master.key.previous'])
    expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600);
});

test('A process that began before a rotation makes data keys that a later process opens', async () => {
  const { process, actor } = await spacesWithSecrets(1);
  await rotateKeys(environment.database, environment.config);
  const { space } = await buildSpace(process.identity, actor.userId);
  await process.secrets.named.put(space.id, 'A', 'v', actor);
  const after = await open();
  expect(await after.secrets.named.readAll(space.id, actor)).toEqual([{ name: 'A', value: 'v' }]);
});

test('A rotation that was killed is begun again and ends, and in between everything opens', async () => {
  const { actor, spaceIds } = await spacesWithSecrets(120);
  const { environment: variables, config, database } = environment;
  let kills = 0;
  for (const afterRows of [1, 40, 130]) {
    const [[start]] = (await database.pool.query('SELECT COUNT(*) AS n FROM data_keys')) as unknown as [
      [{ n: number }],
    ];
    const command = startAtrium(['rotate-key', '--json'], variables);
    await waitFor('the rotation to be under way', async () => {
      const [[now]] = (await database.pool.query('SELECT COUNT(*) AS n FROM data_keys')) as unknown as [
        [{ n: number }],
      ];
      return now.n >= start.n + afterRows || command.child.exitCode !== null;
    });
    command.child.kill('SIGKILL');
    if ((await command.exited).signal === 'SIGKILL') kills += 1;
    const { secrets } = await open();
    for (const [index, spaceId] of spaceIds.entries()) {
      if (index % 20 === 0) expect((await secrets.named.readAll(spaceId, actor))[0]?.value).toBe(`value-${index}`);
    }
  }
  expect(kills).toBeGreaterThan(0);
  const report = await rotateKeys(database, config);
  expect(await masterKeyIds()).toEqual([report.masterKeyId]);
  expect(existsSync(join(config.dataDir, 'master.key.next'))).toBe(false);
  const { secrets } = await open();
  for (const [index, spaceId] of spaceIds.entries()) {
    expect((await secrets.named.readAll(spaceId, actor))[0]?.value).toBe(`value-${index}`);
  }
});

test('The master key moves from the file to a variable, and on to another key, step by step', async () => {
  const { actor, spaceIds } = await spacesWithSecrets(2);
  const [one, two] = [newKey(), newKey()];
  const { database, config } = environment;
  const opens = async (overrides: Partial<typeof config>) => {
    const { secrets } = await open(overrides);
    expect((await secrets.named.readAll(spaceIds[0] ?? '', actor))[0]?.value).toBe('value-0');
  };
  await opens({ masterKey: one });
  const first = await rotateKeys(database, { ...config, masterKey: one });
  expect(first.rewrapped).toBeGreaterThan(0);
  // While processes are restarted one by one, processes with the old key and with the new key work side by side.
  await opens({ masterKey: one, otherMasterKeys: [two] });
  await rotateKeys(database, { ...config, masterKey: two, otherMasterKeys: [one] });
  await opens({ masterKey: one, otherMasterKeys: [two] });
  await opens({ masterKey: two });
  await expect(opens({ masterKey: one })).rejects.toThrow(/another master key/);
});
