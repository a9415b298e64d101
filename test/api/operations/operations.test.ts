import { type OperationKind, operationModels } from '../../../models/operations/operation.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

interface OperationBody {
  id: string;
  kind: string;
  status: string;
  endedAt: string | null;
}

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  // The sweeper must not look at the rows of these tests.
  product = await buildProduct({ ATRIUM_SWEEP_GRACE_SECONDS: '3600' });
  user = await product.user();
});
afterAll(() => product.close());

const cancel = (id: string) => user.fetch(`/api/operations/${id}/cancel`, { method: 'POST' });

/** An operation whose workflow has not begun. */
const begin = (kind: OperationKind = 'deleteThread', userId = user.id) =>
  operationModels(product.environment.database).Operation.begin({
    kind,
    spaceId: user.spaceId,
    userId,
    subjectId: 'thr_none',
  });

test('An operation is visible only to the user who began it', async () => {
  const operation = await begin();
  expect(await user.get(`/api/operations/${operation.id}`)).toEqual({
    id: operation.id,
    kind: 'deleteThread',
    status: 'running',
    createdAt: expect.stringMatching(/Z$/),
    endedAt: null,
  });
  const stranger = await product.user();
  const colleague = await product.user();
  await product.identity.members.add(user.spaceId, colleague.email, 'owner');
  for (const other of [stranger, colleague]) {
    expect((await other.fetch(`/api/operations/${operation.id}`)).status).toBe(404);
    expect((await other.fetch(`/api/operations/${operation.id}/cancel`, { method: 'POST' })).status).toBe(404);
  }
  expect((await user.fetch('/api/operations/op_none')).status).toBe(404);
  expect((await cancel('op_none')).status).toBe(404);
  expect((await fetch(`${product.url}/api/operations/${operation.id}`)).status).toBe(401);
});

test.each([
  ['cloneRepository', 'git:read', 'git:write'],
  ['topUp', 'billing', 'billing'],
  ['deleteThread', 'chat', 'chat'],
  ['purgeItem', 'drive:read', 'drive:write'],
  ['deleteSpace', 'spaces:read', 'spaces:write'],
] as const)('a key sees a %s with %s, and cancels it with %s', async (kind, reading, writing) => {
  const { id } = await begin(kind);
  const statuses = async (scope: string) => {
    const made = await user.fetch('/api/keys', { method: 'POST', body: { name: 'bot', scopes: [scope] } });
    const { key } = (await made.json()) as { key: string };
    const send = async (path: string, method: string) => {
      const headers = { authorization: `Bearer ${key}` };
      const answer = await fetch(`${product.url}/api/operations/${id}${path}`, { method, headers });
      return [answer.status, ((await answer.json()) as { code?: string }).code];
    };
    return { seen: await send('', 'GET'), cancelled: await send('/cancel', 'POST') };
  };
  const refused = [403, 'INSUFFICIENT_SCOPE'];
  expect(await statuses('keys')).toEqual({ seen: refused, cancelled: refused });
  expect((await statuses(reading)).seen).toEqual([200, undefined]);
  if (reading !== writing) expect((await statuses(reading)).cancelled).toEqual(refused);
  const { seen, cancelled } = await statuses(writing);
  expect(seen).toEqual([200, undefined]);
  expect(cancelled).not.toEqual(refused);
});

test('A failed operation tells its error', async () => {
  const operation = await begin();
  await operation.update({ status: 'failed', errorCode: 'WORKFLOW_LOST', errorDetail: 'Lost.', endedAt: new Date() });
  expect(await user.get(`/api/operations/${operation.id}`)).toMatchObject({
    status: 'failed',
    error: { code: 'WORKFLOW_LOST', detail: 'Lost.' },
    endedAt: expect.any(String),
  });
});

test('409 for cancelling an operation that has ended, or that only cleans up', async () => {
  for (const kind of ['deleteThread', 'deleteSpace'] as const) {
    const running = await begin(kind);
    const refused = await cancel(running.id);
    expect([refused.status, await refused.json()]).toMatchObject([409, { code: 'NOT_CANCELLABLE' }]);
    await running.update({ status: 'succeeded', endedAt: new Date() });
    const ended = await cancel(running.id);
    expect([ended.status, await ended.json()]).toMatchObject([409, { code: 'OPERATION_ENDED' }]);
  }
});

test('A deleted space is purged with all its threads', async () => {
  const owner = await product.user();
  const answers = [];
  for (const content of ['One', 'Two']) answers.push(await owner.ask({ content }));
  const deleted = await owner.fetch(`/api/spaces/${owner.spaceId}`, { method: 'DELETE' });
  expect(deleted.status).toBe(204);
  const [operation] = await operationModels(product.environment.database).Operation.findAll({
    where: { subjectId: owner.spaceId },
  });
  await waitFor('the purge', async () => {
    const found = await owner.get<OperationBody>(`/api/operations/${operation?.id}`);
    return found.status === 'succeeded';
  });
  const [rows] = await product.environment.database.sequelize.query(
    'SELECT (SELECT COUNT(*) FROM turns WHERE space_id = :id) + (SELECT COUNT(*) FROM threads WHERE space_id = :id) AS n',
    { replacements: { id: owner.spaceId } },
  );
  expect(rows).toEqual([{ n: 0 }]);
  for (const { threadId } of answers) expect((await owner.fetch(`/api/threads/${threadId}`)).status).toBe(404);
});
