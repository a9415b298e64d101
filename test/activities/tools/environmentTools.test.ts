import { newId } from '../../../base/ids.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildHostingProduct, computerOf } from '../../builders/computer.ts';
import { insertReadyEnvironment } from '../../builders/environmentRows.ts';
import type { TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { collect } from '../../support/sseClient.ts';

// The tools of agents for environments, and for computers that have one.

let product: TestProduct;
let user: ChatUser;
let environmentId: string;
let strangersId: string;
beforeAll(async () => {
  product = await buildHostingProduct();
  user = await product.user();
  const stranger = await product.user();
  const { database } = product.environment;
  const of = { spaceId: user.spaceId, createdBy: newId('user') };
  environmentId = (await insertReadyEnvironment(database, of, { name: 'tools' })).id;
  const ofStranger = { spaceId: stranger.spaceId, createdBy: newId('user') };
  strangersId = (await insertReadyEnvironment(database, ofStranger, { name: 'theirs' })).id;
});
afterAll(() => product.close());

const work = { modelId: 'demo', mode: 'work' };

async function call<Output>(name: string, input: unknown): Promise<Output> {
  const { chunks } = await user.ask({ content: toolLines([[name, input]]), ...work });
  return toolOutputs(chunks)[0] as Output;
}

/** Calls a tool that asks first, and approves. */
async function approved(name: string, input: unknown): Promise<unknown> {
  const { chunks, turnId } = await user.ask({ content: toolLines([[name, input]]), ...work });
  const [asked] = chunks.flatMap((chunk) => (chunk.type === 'data-approval' ? [chunk.data] : []));
  expect(asked).toMatchObject({ toolName: name, state: 'asked' });
  const path = `/chat/turns/${turnId}/approvals/${asked?.toolCallId}`;
  await user.fetch(path, { method: 'POST', body: { approved: true } });
  await user.ended(turnId);
  return toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks)[0];
}

test('An agent lists the environments that its space may use', async () => {
  const shown = { base: 'debian', isShared: false, readyVersion: 1, newestBuild: 'ready' };
  expect(await call('environment_list', {})).toEqual({
    environments: [{ environment: 'tools', name: 'tools', id: environmentId, ...shown }],
  });
  const share = 'UPDATE environments SET shared_at = ? WHERE id = ?';
  await product.environment.database.pool.query(share, [new Date(), strangersId]);
  expect(await call('environment_list', {})).toEqual({
    environments: [
      { environment: 'tools', name: 'tools', id: environmentId, ...shown },
      { environment: strangersId, name: 'theirs', id: strangersId, ...shown, isShared: true },
    ],
  });
  await product.environment.database.pool.query(share, [null, strangersId]);
});

test('An agent makes computers with and without an environment', async () => {
  const plain = await call<{ computerId: string }>('computer_create', { name: 'Plain' });
  expect(plain).toEqual({ computerId: expect.stringMatching(/^cmp_/), name: 'Plain' });
  expect((await computerOf(user, plain.computerId).exec('echo works')).stdout).toBe('works\n');
  expect(await call('computer_create', { environment: 'nothing' })).toBe(
    'error: There is no such environment. There are: tools.',
  );
  expect(await call('computer_create', { environment: strangersId })).toBe(
    'error: There is no such environment. There are: tools.',
  );
});

test('An agent builds an environment once a person approves', async () => {
  const built = await approved('environment_build', { environment: 'tools' });
  const { database } = product.environment;
  const sql = `SELECT number, operation_id AS operationId FROM environment_versions
    WHERE environment_id = ? AND number = 2`;
  const [rows] = await database.pool.query(sql, [environmentId]);
  if (typeof built === 'string') {
    // No host of this machine can build one.
    expect(built).toMatch(/^error: No host here can run computers with a system of their own now/);
    expect(rows).toEqual([]);
  } else {
    expect(built).toEqual({ version: 2, status: 'building' });
    expect(rows).toEqual([{ number: 2, operationId: expect.any(String) }]);
    const [{ operationId }] = rows as [{ operationId: string }];
    expect((await user.fetch(`/api/operations/${operationId}/cancel`, { method: 'POST' })).status).toBe(200);
  }
});
