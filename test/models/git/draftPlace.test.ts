import { newId } from '../../../base/ids.ts';
import { servingComputer } from '../../../models/computers/servingComputer.ts';
import { askToDraft } from '../../../models/git/drafting.ts';
import { draftsOf } from '../../../models/git/drafts.ts';
import { insertReadyEnvironment } from '../../builders/environmentRows.ts';
import { buildRepositoryRow } from '../../builders/repositoryRow.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// On which computer a draft of an app is.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

/** A repository that is an app, whose component names an environment. */
async function build(name?: string) {
  const { database } = environment;
  const { spaceId, itemId } = await buildRepositoryRow(environment);
  const ready = "UPDATE git_repositories SET status = 'ready', computer_id = ? WHERE item_id = ?";
  const [rows] = await database.pool.query('SELECT id FROM computers WHERE space_id = ?', [spaceId]);
  const [usual] = rows as { id: string }[];
  await database.pool.query(ready, [usual?.id, itemId]);
  const createdBy = newId('user');
  const actor = { userId: createdBy, credentialId: null, address: null };
  const tools = await insertReadyEnvironment(database, { spaceId, createdBy }, { name: 'tools' });
  const component = { name: 'run', kind: 'process', command: 'true', ...(name !== undefined && { environment: name }) };
  await insertRows(database, {
    apps: {
      id: newId('app'),
      item_id: itemId,
      live: 1,
      space_id: spaceId,
      manifest: JSON.stringify({ name: 'App', components: [component] }),
      manifest_tag: '',
      created_by: createdBy,
      created_at: new Date(),
    },
  });
  const draft = async (more: { computerId?: string; environmentId?: string } = {}) => {
    const request = { spaceId, itemId, id: newId('operation'), actor, deadlineMs: 60_000 };
    await askToDraft(environment, { ...request, branch: newId('gitDraft'), name: 'a', maxDrafts: 9, ...more });
    return (await draftsOf(database, itemId)).at(-1)?.computerId;
  };
  const serving = async (of: string) => (await servingComputer(environment, { spaceId, environment: of, actor })).id;
  return { draft, serving, usual: usual?.id ?? '', tools };
}

test('A draft is on the computer of the environment that its app names', async () => {
  const { draft, serving, usual, tools } = await build('tools');
  expect(await draft()).toBe(await serving(tools.id));
  expect(await draft({ computerId: usual })).toBe(usual);
});

test('A draft is on the computer of the environment that the request names, or the default one', async () => {
  const { draft, serving, usual, tools } = await build();
  expect(await draft()).toBe(usual);
  expect(await draft({ environmentId: tools.id })).toBe(await serving('tools'));
  await expect(draft({ environmentId: tools.id, computerId: usual })).rejects.toMatchObject({
    code: 'COMPUTER_AMBIGUOUS',
  });
  await expect(draft({ environmentId: 'env_unknown' })).rejects.toMatchObject({ code: 'ENVIRONMENT_UNKNOWN' });
});
