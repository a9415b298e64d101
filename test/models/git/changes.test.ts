import { newId } from '../../../base/ids.ts';
import { askForChange, type ChangeRequest } from '../../../models/git/changes.ts';
import { askToClone } from '../../../models/git/cloning.ts';
import type { GitChangeKind } from '../../../models/git/orders.ts';
import { buildCredits } from '../../builders/billing.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Limits on changes of repositories that have been cloned.

const most = 3;
let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment({
    ATRIUM_GIT_MAX_CLONES: String(most),
    ATRIUM_BILLING_COMPUTER_CREDITS_PER_MINUTE: '0.5',
    ATRIUM_BILLING_ENFORCED: 'true',
  });
});
afterAll(() => environment.close());

async function buildRepositories(credits = 1) {
  const { database, config } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  if (credits > 0) await buildCredits(database, credits, space.id);
  const actor = { userId: user.id, credentialId: null, address: null };
  const common = { spaceId: space.id, actor, deadlineMs: 60_000 };
  return {
    async repository(filter: string | null = null): Promise<string> {
      const itemId = newId('driveItem');
      await database.pool.query(
        `INSERT INTO git_repositories (item_id, space_id, computer_id, tree_path, url, filter, operation_id, status,
                                       status_at, version, created_by, created_at)
         VALUES (?, ?, ?, ?, 'https://git.example.com/a.git', ?, 'op_1', 'ready', NOW(3), 0, ?, NOW(3))`,
        [itemId, space.id, newId('computer'), itemId, filter, user.id],
      );
      return itemId;
    },
    ask: (itemId: string, kind: GitChangeKind, more: Partial<ChangeRequest> = {}, billing = config.billing) =>
      askForChange({ database, config: { ...config, billing } }, { ...common, itemId, kind, input: {}, ...more }).then(
        ({ status }) => status as string,
        ({ code }: { code: string }) => code,
      ),
    clone: () =>
      askToClone(database, {
        ...common,
        ...{ id: newId('driveItem'), url: 'https://git.example.com/b.git', credentialId: null, branch: null },
        ...{ depth: null, filter: null, parentId: undefined, computerId: undefined, maxClones: most },
        name: { text: 'b', isPreferred: true },
      }).then(
        () => 'running',
        ({ code }: { code: string }) => code,
      ),
  };
}

describe('Exchanges with git servers', () => {
  const refused = 'GIT_TOO_MANY_EXCHANGES';

  it.each(['pullRepository', 'pushRepository'] as const)(
    'A space has a limited number of repositories that exchange at once: %s',
    async (kind) => {
      const { repository, ask, clone } = await buildRepositories();
      const items = await Promise.all(Array.from({ length: 2 * most }, () => repository()));
      const answers = await Promise.all(items.map((itemId) => ask(itemId, kind)));
      const sorted = [...Array(most).fill(refused), ...Array(most).fill('running')];
      expect(answers.toSorted()).toEqual(sorted);
      expect(await clone()).toBe('GIT_TOO_MANY_CLONES');
      const [begun = '', other = ''] = [items[answers.indexOf('running')], items[answers.indexOf(refused)]];
      // Orders of one repository run one after the other.
      expect(await ask(begun, kind)).toBe('running');
      expect(await ask(other, 'commitChanges', { input: { message: 'a' } })).toBe('running');
      expect(await ask(other, 'checkoutBranch', { input: { branch: 'a' } })).toBe('running');
      const { repository: anothers, ask: askAnother } = await buildRepositories();
      expect(await askAnother(await anothers(), kind)).toBe('running');
    },
  );

  it('Clones and check-outs of partial clones count as exchanges', async () => {
    const { repository, ask, clone } = await buildRepositories();
    expect(await ask(await repository('blob:none'), 'checkoutBranch', { input: { branch: 'a' } })).toBe('running');
    expect(await ask(await repository('blob:none'), 'createBranch', { input: { name: 'a' } })).toBe('running');
    expect(await clone()).toBe('running');
    expect(await ask(await repository(), 'pullRepository')).toBe(refused);
    expect(await ask(await repository('tree:0'), 'checkoutBranch', { input: { branch: 'a' } })).toBe(refused);
    expect(await ask(await repository(), 'createBranch', { input: { name: 'a' } })).toBe('running');
  });
});

it('A change needs credits, and repeating the request of a change that has begun does not', async () => {
  const { repository, ask } = await buildRepositories(0);
  const itemId = await repository();
  const id = newId('operation');
  expect(await ask(itemId, 'commitChanges', { id })).toBe('CREDITS_EXHAUSTED');
  const { billing } = environment.config;
  expect(await ask(itemId, 'commitChanges', { id }, { ...billing, enforced: false })).toBe('running');
  expect(await ask(itemId, 'commitChanges', { id })).toBe('running');
  expect(await ask(itemId, 'commitChanges')).toBe('CREDITS_EXHAUSTED');
});
