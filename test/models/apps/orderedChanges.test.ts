import { getAppOf, makeApp } from '../../../models/apps/app.ts';
import { changesOf } from '../../../models/apps/changes.ts';
import { lookAtApp } from '../../../models/apps/lookAtApp.ts';
import type { AppManifest } from '../../../models/apps/manifest.ts';
import { approveVersion } from '../../../models/apps/takeVersion.ts';
import { findVersion } from '../../../models/apps/version.ts';
import { transaction } from '../../../models/database/database.ts';
import type { DriveItem } from '../../../models/drive/driveItem.ts';
import { beginOrder, endOrder, type GitOrderKind } from '../../../models/git/orders.ts';
import { buildIdentity } from '../../builders/identity.ts';
import { buildRepositoryRow } from '../../builders/repositoryRow.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Git orders that were placed before the repository became an app, and that run after it.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const component = {
  ...{ kind: 'process', name: 'run', command: 'sh run.sh', cwd: '', env: {}, secrets: ['TOKEN'] },
  ...{ timeoutSeconds: 60, retry: { attempts: 1, delaySeconds: 0 }, concurrency: 1, isDefault: true },
} as const;
const manifest = { name: 'App', components: [{ ...component, secrets: [...component.secrets] }] } as AppManifest;

/** A ready repository with an order of this kind, and its owner. */
async function setUp(kind: GitOrderKind, scopes: string[] | null) {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const ref = await buildRepositoryRow(environment);
  const { itemId, spaceId } = ref;
  const sql = 'SELECT created_by AS userId FROM git_repositories WHERE item_id = ?';
  const [rows] = await database.pool.query(sql, [itemId]);
  const { userId } = (rows as { userId: string }[])[0] as { userId: string };
  await database.pool.query("UPDATE git_repositories SET status = 'ready' WHERE item_id = ?", [itemId]);
  const key = scopes && (await identity.keys.create(userId, { name: 'bot', scopes })).row;
  const actor = { userId, credentialId: key?.id ?? null };
  const order = await transaction(database, (tx) =>
    beginOrder(tx, ref, { kind, input: {}, actor, deadlineMs: 60_000 }),
  );
  const owner = { userId, credentialId: null, address: null };
  const authority = { apiKeyId: null, scopes: null };
  const deps = {
    database,
    appManifests: { read: () => Promise.resolve({ kind: 'read' as const, tag: 'one', manifest }) },
  };
  return {
    make: () => makeApp(database, { itemId, spaceId, name: 'App', authority, actor: owner }),
    async look() {
      const item = { id: itemId, spaceId, kind: 'repository' } as DriveItem;
      return lookAtApp(deps, await getAppOf(database, itemId), item, AbortSignal.timeout(10_000));
    },
    end: () => transaction(database, (tx) => endOrder(tx, order, { status: 'succeeded', result: {} })),
    approve: async (versionId: string) =>
      approveVersion(database, await getAppOf(database, itemId), { versionId, actor: owner, authority }),
    keyId: key?.id,
  };
}

test('A git order of an API key counts as a change of the app that the repository becomes meanwhile', async () => {
  const { make, look, end, approve, keyId } = await setUp('pullRepository', ['git:write']);
  const { app } = await make();
  const changes = await changesOf(environment.database, app.id);
  expect(changes.map(({ apiKeyId }) => apiKeyId)).toEqual([null, keyId]);
  const waiting = (await look()).waitingId ?? '';
  expect(await findVersion(environment.database, app.id, waiting)).toMatchObject({
    state: 'waiting',
    reasons: [{ code: 'SCOPE_MISSING' }, { code: 'SCOPE_MISSING' }],
  });
  await expect(approve(waiting)).rejects.toMatchObject({ code: 'GIT_REPOSITORY_BUSY' });
  await end();
  expect(await look()).toMatchObject({ versionId: null, waitingId: waiting });
  await approve(waiting);
  expect(await look()).toMatchObject({ versionId: waiting, waitingId: null, treeWaits: false });
});

test.each<[string, GitOrderKind, string[] | null]>([
  ['a person has ordered', 'pullRepository', null],
  ['a key has ordered and leaves the working tree as it is', 'pushRepository', ['git:write']],
])('A change that %s needs no approval', async (_what, kind, scopes) => {
  const { make, look } = await setUp(kind, scopes);
  await make();
  expect(await look()).toMatchObject({ versionId: expect.any(String), waitingId: null });
});
