import { MockActivityEnvironment } from '@temporalio/testing';
import type { EnvironmentDeps } from '../../../activities/environments/deps.ts';
import { createRunStep } from '../../../activities/environments/runStep.ts';
import { DomainError } from '../../../base/errors.ts';
import { newId } from '../../../base/ids.ts';
import { failBuild, nextOfBuild } from '../../../models/environments/builds/builds.ts';
import { stepRows } from '../../../models/environments/builds/stepRows.ts';
import { createEnvironment } from '../../../models/environments/environment.ts';
import { builderOf, findVersion } from '../../../models/environments/version.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { reportTestHost } from '../../builders/computerRows.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Whether a step of a build is still run. Its computer is only a row.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
  await reportTestHost(environment, { id: newId('computerHost'), bases: ['debian'] });
});
afterAll(() => environment.close());

type Client = Record<'startProcess' | 'output' | 'process' | 'writeFile', unknown>;

/** A build that a member of the space has asked for, with an API key of theirs or without one. */
async function build({ hasKey = false }, client: Partial<Client> = {}) {
  const { database, config } = environment;
  const identity = await buildIdentity(environment);
  const { user: owner } = await buildUser(identity);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, owner.id);
  const spaceId = space.id;
  const query = (sql: string, values: unknown[]) => database.pool.query(sql, values);
  await query("INSERT INTO space_members (space_id, user_id, role, created_at) VALUES (?, ?, 'editor', NOW(3))", [
    spaceId,
    user.id,
  ]);
  const key = hasKey ? await identity.keys.create(user.id, { name: 'key', scopes: ['*'] }) : undefined;
  const actor = { userId: user.id, credentialId: key?.row.id ?? null, address: null };
  const [id, versionId] = [newId('environment'), newId('environmentVersion')];
  const definition = { base: 'debian', steps: [{ run: 'true' }], warnings: [] };
  await createEnvironment(environment, { id, versionId, spaceId, name: id.toLowerCase(), definition, actor });
  await nextOfBuild(environment, versionId);
  const awake = jest.fn(async () => {
    await query("UPDATE computers SET status = 'running', generation = 1 WHERE id = ?", [
      builderOf({ id: versionId, spaceId }).computerId,
    ]);
    return client;
  });
  const deps = {
    config,
    database,
    identity,
    logger: createLogger({ level: 'silent' } as never),
    liveComputers: { awake, running: async () => client },
    storage: { read: async () => Buffer.from('content') },
    secrets: { redactors: { forSpace: async () => [] } },
  } as unknown as EnvironmentDeps;
  const run = () => new MockActivityEnvironment().run(createRunStep(deps), { versionId, number: 1 });
  const statuses = async () => (await stepRows(database.pool, [versionId])).map(({ status }) => status);
  return { identity, spaceId, user, key, awake, run, statuses, versionId, query };
}

type Built = Awaited<ReturnType<typeof build>>;

const disable = ({ query, user }: Built) => query('UPDATE users SET disabled_at = NOW(3) WHERE id = ?', [user.id]);

const forbidden = { type: 'BUILD_FORBIDDEN', nonRetryable: true };

test.each<[string, boolean, (built: Built) => Promise<unknown>]>([
  ['was disabled', false, disable],
  ['was removed', false, ({ query, user }) => query('DELETE FROM space_members WHERE user_id = ?', [user.id])],
  [
    'is only a viewer',
    false,
    ({ query, user }) => query("UPDATE space_members SET role = 'viewer' WHERE user_id = ?", [user.id]),
  ],
  [
    'asked with a key that was revoked',
    true,
    ({ query, user }) => query('UPDATE api_keys SET revoked_at = NOW(3) WHERE user_id = ?', [user.id]),
  ],
])('No step is run for a user who %s', async (_why, hasKey, change) => {
  const built = await build({ hasKey });
  await change(built);
  await expect(built.run()).rejects.toMatchObject(forbidden);
  expect(built.awake).not.toHaveBeenCalled();
  expect(await built.statuses()).toEqual(['waiting', 'waiting']);
  // Even if the build has waited for room.
  const { database } = environment;
  await built.query("UPDATE environment_versions SET waits_for = 'NO_HOST' WHERE id = ?", [built.versionId]);
  await failBuild(environment, built.versionId, 'BUILD_FORBIDDEN');
  expect(await findVersion(database.pool, built.versionId)).toMatchObject({ errorCode: 'BUILD_FORBIDDEN' });
});

test('A step ends soon after its user was disabled', async () => {
  const begun = Promise.withResolvers<void>();
  const client = {
    process: async () => undefined,
    startProcess: async () => begun.resolve(),
    async *output(_id: string, { signal }: { signal: AbortSignal }) {
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      yield undefined as never;
    },
  };
  const built = await build({}, client);
  const run = built.run();
  await begun.promise;
  await disable(built);
  await expect(run).rejects.toMatchObject(forbidden);
  expect(await built.statuses()).toEqual(['waiting', 'running']);
});

test('A step of an editor is run, and with a key that is valid', async () => {
  const failing = {
    startProcess: async () => {
      throw new Error('So far it came.');
    },
  };
  for (const hasKey of [false, true])
    await expect((await build({ hasKey }, failing)).run()).rejects.toThrow('So far it came.');
});

test('A worker that was held up copies no more files once another has done the step', async () => {
  const written: string[] = [];
  const absent = new DomainError('notFound', 'PROCESS_NOT_FOUND', 'There is no such process.');
  const built: Built = await build(
    {},
    {
      process: () => Promise.reject(absent),
      async writeFile(path: string) {
        written.push(path);
        const sql = "UPDATE environment_steps SET status = 'ran' WHERE version_id = ? AND number = 1";
        if (written.length === 2) await built.query(sql, [built.versionId]);
      },
    },
  );
  const plan = { step: { copy: { from: '/files', to: '/to/' } }, setting: { env: {}, workdir: null, user: null } };
  const files = Object.fromEntries(['a', 'b', 'c'].map((path) => [path, { objectKey: path, sha256: path }]));
  await built.query('UPDATE environment_steps SET plan = ?, files = ? WHERE version_id = ? AND number = 1', [
    JSON.stringify(plan),
    JSON.stringify(files),
    built.versionId,
  ]);
  await built.run();
  expect(written).toEqual(['/to/a', '/to/b']);
  expect(await built.statuses()).toEqual(['waiting', 'ran']);
});
