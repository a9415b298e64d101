import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import { newId } from '../../../base/ids.ts';
import { actorWorkflowId } from '../../../temporal/workflowIds.ts';
import { buildChatUser } from '../../builders/chat.ts';
import { buildGit, gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// What the clones of a space may take: slots, room, and what is left when they are given up.

const slots = 2;
const maxClones = 3;

let product: TestGit;
let connection: Connection;
/** Undoes what a test has begun. */
let cleanUps: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  product = await buildGit({
    ...hurriedSweeper,
    ATRIUM_GIT_SLOTS: String(slots),
    ATRIUM_GIT_MAX_CLONES: String(maxClones),
    ATRIUM_GIT_SILENCE_SECONDS: '3600',
    // Long enough that no clone gets another attempt while a test looks at it, even on a slow machine.
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '20',
    ATRIUM_DRIVE_QUOTA_MIB: '1',
  });
  connection = await Connection.connect({ address: product.environment.config.temporal.address });
});
afterEach(async () => {
  product.server.reset();
  await Promise.all(cleanUps.map((end) => end()));
  cleanUps = [];
});
afterAll(async () => {
  await connection.close();
  await product.close();
});

async function newUser() {
  const user = await buildChatUser(product);
  const git = gitOf(user);
  const cancel = (operationId: string | null) =>
    user.fetch(`/api/operations/${operationId}/cancel`, { method: 'POST' });
  /** Begins a clone that is called off at the end of the test. */
  async function clone(body: { url?: string; name?: string } = {}) {
    const made = await git.clone({ url: remoteRepository(product.server).url, ...body });
    const { operationId } = made.body;
    if (made.status === 201) cleanUps.push(() => cancel(operationId));
    return made;
  }
  return { user, git, clone, cancel };
}

/** The server takes requests for a pack and does not answer. Returns how many requests are waiting now. */
function holdPacks(): () => number {
  let held = 0;
  product.server.interfere = (req, res) => {
    if (!req.url?.endsWith('/git-upload-pack')) return false;
    held += 1;
    res.once('close', () => {
      held -= 1;
    });
    return true;
  };
  return () => held;
}

/** Whether the work of a repository waits for a slot (1) or is being done (2). Undefined before that. */
async function workOf(itemId: string): Promise<number | undefined> {
  const client = new Client({ connection, namespace: product.environment.config.temporal.namespace });
  try {
    const { raw } = await client.workflow.getHandle(actorWorkflowId('repository', itemId)).describe();
    return raw.pendingActivities?.[0]?.state ?? undefined;
  } catch (error) {
    // The answer may come before its workflow has started.
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

async function rowsOf<Row = { n: number }>(sql: string, values: unknown[]): Promise<Row[]> {
  const [rows] = await product.environment.database.pool.query(sql, values);
  return rows as Row[];
}

test('Silent git servers hold up clones, but no chat', async () => {
  const { user, clone, cancel } = await newUser();
  const held = holdPacks();
  const made = [await clone(), await clone(), await clone()].map(({ body }) => body);
  const works = () => Promise.all(made.map(({ id }) => workOf(id)));
  await waitFor('the slots to be taken', () => held() === slots);
  await waitFor('all clones to be asked for', async () => (await works()).every((state) => state !== undefined));
  const answer = await user.ask({ content: '/say hello', modelId: 'demo', spaceId: user.spaceId });
  expect((await user.ended(answer.turnId)).status).toBe('completed');
  expect([(await works()).toSorted(), held()]).toEqual([[1, 2, 2], slots]);

  const states = await works();
  await cancel(made[states.indexOf(2)]?.operationId ?? null);
  await waitFor('the waiting clone', async () => (await workOf(made[states.indexOf(1)]?.id ?? '')) === 2);
});

test('A space has a limited number of clones under way, also with simultaneous requests', async () => {
  const [{ git, clone, cancel }, other] = [await newUser(), await newUser()];
  holdPacks();
  const { url } = remoteRepository(product.server);
  const answers = await Promise.all(Array.from({ length: 2 * maxClones }, (_, i) => clone({ url, name: `r${i}` })));
  const begun = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(({ status }) => status !== 201);
  expect([begun.length, refused.map(({ status, code }) => `${status} ${code}`)]).toEqual([
    maxClones,
    Array(maxClones).fill('409 GIT_TOO_MANY_CLONES'),
  ]);
  expect((await other.clone()).status).toBe(201);

  const { id, operationId } = begun[0]?.body ?? { id: '', operationId: null };
  await cancel(operationId);
  expect(await git.cloned(id)).toMatchObject({ error: { code: 'CALLED_OFF' } });
  expect((await clone()).status).toBe(201);
  const retried = await git.retry(id);
  expect([retried.status, retried.code]).toEqual([409, 'GIT_TOO_MANY_CLONES']);
});

test('A clone that exceeds the quota of its space is not stored', async () => {
  const { user, git, clone } = await newUser();
  const { url } = remoteRepository(product.server, { 'large.txt': randomBytes(2_097_152).toString('hex') });
  const failed = await git.cloned((await clone({ url })).body.id);
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'QUOTA_EXCEEDED' } });
  // The clones of other tests may still store something, which has a row of another space.
  const stored = await product.bucket.keys();
  const known = await rowsOf<{ object_key: string }>('SELECT object_key FROM drive_objects', []);
  expect(stored.filter((key) => !known.some(({ object_key }) => object_key === key))).toEqual([]);
  expect(await rowsOf('SELECT object_key FROM drive_objects WHERE space_id = ?', [user.spaceId])).toEqual([]);
  expect(await user.get(`${git.space}/drive`)).toMatchObject({ usedBytes: 0 });
});

test('Deleting a space ends its running and its waiting clones, and nothing is left of them', async () => {
  const { user, git, clone } = await newUser();
  const held = holdPacks();
  const ids = [(await clone()).body.id, (await clone()).body.id, (await clone()).body.id];
  await waitFor('the slots to be taken', () => held() === slots);
  expect((await user.fetch(git.space, { method: 'DELETE' })).ok).toBe(true);
  const isOver = async () =>
    (await rowsOf("SELECT id FROM operations WHERE space_id = ? AND status = 'running'", [user.spaceId])).length === 0;
  await waitFor('all operations of the space to end', isOver);
  for (const table of ['git_repositories', 'git_orders', 'git_bundles', 'drive_objects']) {
    expect([table, await rowsOf(`SELECT * FROM ${table} WHERE space_id = ?`, [user.spaceId])]).toEqual([table, []]);
  }
  await waitFor('the connections to the server to end', () => held() === 0);
  const { dir } = product.environment.config.git;
  expect(ids.filter((id) => existsSync(join(dir, id)))).toEqual([]);
});

test('an operation whose repository is gone, as an older version left it, ends', async () => {
  const { user } = await newUser();
  const [id, itemId] = [newId('operation'), newId('driveItem')];
  await product.environment.database.pool.query(
    'INSERT INTO operations (id, kind, space_id, user_id, subject_id, status, created_at) VALUES (?)',
    [[id, 'cloneRepository', user.spaceId, user.id, itemId, 'running', new Date()]],
  );
  const ended = await waitFor('the end of the operation', async () => {
    const operation = await gitOf(user).operation(id);
    return operation.status !== 'running' && operation;
  });
  expect(ended).toMatchObject({ status: 'failed', error: { code: 'GIT_REPOSITORY_REMOVED' } });
});
