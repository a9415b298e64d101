import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buildChatUser } from '../../builders/chat.ts';
import { driveOf } from '../../builders/drive.ts';
import { buildGit, gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// A repository as an item of the drive: it moves, goes into the trash and comes back like any item. Deleted for good,
// nothing of it is left.

let product: TestGit;

beforeAll(async () => {
  product = await buildGit(hurriedSweeper);
});
afterAll(() => product.close());
beforeEach(() => product.server.reset());

async function cloned() {
  const user = await buildChatUser(product);
  const [git, drive] = [gitOf(user), driveOf(product, user)];
  const { id } = (await git.clone({ url: remoteRepository(product.server).url })).body;
  return { user, git, drive, id, repository: await git.cloned(id) };
}

const rowsOf = async (table: string, id: string) => {
  const sql = `SELECT * FROM ${table} WHERE item_id = ?`;
  const [rows] = await product.environment.database.pool.query(sql, [id]);
  return rows as { object_key?: string }[];
};
const mirrorOf = (id: string) => join(product.environment.config.git.dir, id);

test('A repository is shown in the tree, is moved and renamed, and keeps its kind and its tree', async () => {
  const { git, drive, id, repository } = await cloned();
  const tree = await (await drive.send('GET', '/fs/tree?format=text')).text();
  expect(tree).toContain(`${repository.name}  (repository)`);
  const moved = await drive.send('PATCH', `/items/${id}`, { path: '/work/renamed' });
  expect([moved.status, await moved.json()]).toEqual([
    200,
    expect.objectContaining({ kind: 'repository', path: '/work/renamed' }),
  ]);
  expect(await git.get(id)).toMatchObject({ name: 'renamed', path: '/work/renamed', treePath: repository.treePath });
});

test('A repository is no file and no folder: it has no content to download, and takes no items', async () => {
  const { drive, id } = await cloned();
  for (const path of [`/items/${id}/content`, `/items/${id}/url`]) {
    const refused = await drive.send('GET', path);
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([409, 'NOT_A_FILE']);
  }
  const below = await drive.send('POST', '/folders', { parentId: id, name: 'below' });
  expect([below.status, ((await below.json()) as { code: string }).code]).toEqual([409, 'NOT_A_FOLDER']);
});

test('A repository in the trash is hidden, and is unchanged when it comes back', async () => {
  const { git, drive, id, repository } = await cloned();
  expect((await drive.send('DELETE', `/items/${id}`)).status).toBe(204);
  expect((await git.send('GET', `/git/${id}`)).status).toBe(404);
  expect((await git.retry(id)).status).toBe(404);
  expect((await drive.send('POST', `/items/${id}/restore`)).status).toBe(200);
  expect(await git.get(id)).toEqual(repository);
  expect(await rowsOf('git_bundles', id)).toHaveLength(1);
});

test('A repository that is deleted for good takes its bundles and its mirror along', async () => {
  const { user, drive, git, id } = await cloned();
  const [{ object_key: key } = {}] = await rowsOf('git_bundles', id);
  expect([await product.bucket.keys(), existsSync(mirrorOf(id))]).toEqual([expect.arrayContaining([key]), true]);
  await drive.send('DELETE', `/items/${id}?permanent=true`);
  await waitFor('the repository to go', async () => (await rowsOf('git_repositories', id)).length === 0);
  await waitFor('the bundle to go', async () => !(await product.bucket.keys()).includes(key ?? ''));
  expect([await rowsOf('git_bundles', id), existsSync(mirrorOf(id))]).toEqual([[], false]);
  const used = async () => (await user.get<{ usedBytes: number }>(`${git.space}/drive`)).usedBytes;
  await waitFor('the bytes to be given back', async () => (await used()) === 0);
});

test('A repository goes with its folder, also while it is still being cloned', async () => {
  const user = await buildChatUser(product);
  const [git, drive] = [gitOf(user), driveOf(product, user)];
  const { id: parentId } = (await (await drive.send('POST', '/folders', { path: '/work' })).json()) as { id: string };
  let isHeld = false;
  product.server.interfere = (req) => {
    isHeld ||= req.url?.endsWith('/git-upload-pack') ?? false;
    return isHeld;
  };
  const { id, operationId } = (await git.clone({ url: remoteRepository(product.server).url, parentId })).body;
  await waitFor('the clone to be held', () => isHeld);
  await drive.send('DELETE', `/items/${parentId}?permanent=true`);
  await waitFor('the repository to go', async () => (await rowsOf('git_repositories', id)).length === 0);
  expect(await git.operation(operationId ?? '')).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_REPOSITORY_REMOVED' },
  });
  expect([await rowsOf('git_orders', id), existsSync(mirrorOf(id))]).toEqual([[], false]);
});

test('Deleting a space leaves nothing of its repositories', async () => {
  const { user, git, id } = await cloned();
  const [{ object_key: key } = {}] = await rowsOf('git_bundles', id);
  expect((await user.fetch(git.space, { method: 'DELETE' })).ok).toBe(true);
  for (const table of ['git_repositories', 'git_bundles', 'git_orders']) {
    await waitFor(`${table} to be empty`, async () => (await rowsOf(table, id)).length === 0);
  }
  await waitFor('the bundle to go', async () => !(await product.bucket.keys()).includes(key ?? ''));
  await waitFor('the mirror to go', () => !existsSync(mirrorOf(id)));
});
