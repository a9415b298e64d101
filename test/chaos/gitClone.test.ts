import { buildChatUser } from '../builders/chat.ts';
import { buildGit, gitOf, remoteRepository, type TestGit } from '../builders/repository.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

let product: TestGit;

beforeAll(async () => {
  product = await buildGit(hurriedSweeper);
});
afterAll(() => product.close());

test('A clone whose process is killed goes on after a restart and is done once', async () => {
  const user = await buildChatUser(product);
  const git = gitOf(user);
  let isHeld = false;
  product.server.interfere = (req) => {
    isHeld ||= req.url?.endsWith('/git-upload-pack') ?? false;
    return isHeld;
  };
  const { id, operationId } = (await git.clone({ url: remoteRepository(product.server).url })).body;
  await waitFor('the clone to be under way', () => isHeld);
  await product.process.kill('SIGKILL');
  product.server.reset();
  await product.restart();

  expect(await git.cloned(id)).toMatchObject({ status: 'ready', error: null });
  expect((await git.operation(operationId ?? '')).status).toBe('succeeded');
  const { pool } = product.environment.database;
  const [bundles] = await pool.query('SELECT version FROM git_bundles WHERE item_id = ?', [id]);
  const [orders] = await pool.query('SELECT id FROM git_orders WHERE item_id = ?', [id]);
  expect([bundles, orders]).toEqual([[{ version: 1 }], []]);
});

test('The sweeper starts a clone whose workflow was never started or was lost', async () => {
  const user = await buildChatUser(product);
  const git = gitOf(user);
  product.server.requires = 'nobody:knows';
  const { id } = (await git.clone({ url: remoteRepository(product.server).url })).body;
  await git.cloned(id);
  product.server.reset();
  // The rows that a process leaves that dies between its commit and the start of the workflow.
  const { pool } = product.environment.database;
  const now = new Date();
  const order = `op_${id.slice('itm_'.length)}`;
  const operation = [order, 'retryClone', user.spaceId, user.id, id, 'running', now];
  await pool.query('INSERT INTO operations (id, kind, space_id, user_id, subject_id, status, created_at) VALUES (?)', [
    operation,
  ]);
  await pool.query(
    'INSERT INTO git_orders (id, item_id, space_id, kind, input, step, created_at, deadline_at) VALUES (?)',
    [[order, id, user.spaceId, 'retryClone', '{}', 0, now, new Date(now.getTime() + 600_000)]],
  );
  await pool.query("UPDATE git_repositories SET status = 'cloning' WHERE item_id = ?", [id]);
  expect(await git.cloned(id)).toMatchObject({ status: 'ready' });
});
