import { ApplicationFailure } from '@temporalio/activity';
import { oneAfterTheOther } from '../../../activities/git/oneAfterTheOther.ts';
import { transaction } from '../../../models/database/database.ts';
import { beginOrder, type GitOrderKind } from '../../../models/git/orders.ts';
import { endRepositoryStep, nextRepositoryStep, type OrderStep } from '../../../models/git/steps.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { buildRepositoryRow } from '../../builders/repositoryRow.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

/**
 * An order of a repository, and functions that run its steps. Each run of a step takes its next failure from
 * `failures`.
 */
async function ordered(kind: GitOrderKind, failures: Partial<Record<OrderStep, ApplicationFailure[]>> = {}) {
  const { database } = environment;
  const ref = await buildRepositoryRow(environment);
  const actor = { userId: 'usr_1', credentialId: null };
  const { id: orderId } = await transaction(database, (tx) =>
    beginOrder(tx, ref, { kind, input: {}, actor, deadlineMs: 60_000 }),
  );
  const { itemId } = ref;
  const done: string[] = [];
  const act = (step: OrderStep) => async () => {
    const failure = failures[step]?.shift();
    done.push(failure === undefined ? step : `${step} fails`);
    if (failure !== undefined) throw failure;
  };
  const acts = { fill: act('fill'), change: act('change'), save: act('save'), update: act('update') };
  const operation = async () => {
    const { status, errorCode } = (await operationModels(database).Operation.findByPk(orderId)) ?? {};
    return [status, errorCode];
  };
  return {
    done,
    operation,
    steps: oneAfterTheOther(environment, acts),
    work: { itemId, orderId },
    next: async () => (await nextRepositoryStep(database, itemId)).do,
    at: async () => {
      const next = await nextRepositoryStep(database, itemId);
      return 'at' in next ? next.at : undefined;
    },
    end: async (step: OrderStep, code?: string, at?: number) =>
      (await endRepositoryStep(database, { itemId, orderId, step, at, ...(code !== undefined && { code }) }))?.step,
    callOff: () => database.pool.query('UPDATE operations SET cancel_requested_at = NOW(3) WHERE id = ?', [orderId]),
  };
}

const refused = () => ApplicationFailure.create({ type: 'GIT_CONFLICT', nonRetryable: true });
const passing = () => ApplicationFailure.create({ type: 'UNAVAILABLE' });

test('The first activity of an order runs all its steps, and the workflow finds nothing left', async () => {
  const { steps, work, done, operation, next, end } = await ordered('createBranch');
  expect(await next()).toBe('fill');
  await steps.fill(work);
  expect([done, await operation()]).toEqual([
    ['fill', 'change', 'save'],
    ['succeeded', null],
  ]);
  expect([await end('fill'), await next()]).toEqual([undefined, 'rest']);
});

test('The chain of steps stops before a step that another activity runs', async () => {
  const { steps, work, done, next, end } = await ordered('pullRepository');
  await next();
  await steps.fill(work);
  expect([done.splice(0), await end('fill'), await next()]).toEqual([['fill', 'save'], undefined, 'fetch']);
  expect(await end('fetch')).toBe('update');
  await steps.update(work);
  expect([done, await next()]).toEqual([['update', 'change', 'save'], 'rest']);
});

test('A later step that fails for good ends the order with its own error code', async () => {
  const { steps, work, done, operation, end, next } = await ordered('createBranch', { change: [refused()] });
  await next();
  await steps.fill(work);
  expect([done, await operation()]).toEqual([
    ['fill', 'change fails'],
    ['failed', 'GIT_CONFLICT'],
  ]);
  expect([await end('fill'), await next()]).toEqual([undefined, 'rest']);
});

test('If the first step fails for good, the workflow ends the order', async () => {
  const { steps, work, operation, end, next } = await ordered('createBranch', { fill: [refused()] });
  await next();
  await expect(steps.fill(work)).rejects.toMatchObject({ type: 'GIT_CONFLICT' });
  expect(await operation()).toEqual(['running', null]);
  await end('fill', 'GIT_CONFLICT');
  expect([await operation(), await next()]).toEqual([['failed', 'GIT_CONFLICT'], 'rest']);
});

test('A retry continues with the step that failed, and one more call does nothing', async () => {
  const { steps, work, done, operation, next } = await ordered('createBranch', { save: [passing()] });
  await next();
  await expect(steps.fill(work)).rejects.toMatchObject({ type: 'UNAVAILABLE' });
  await steps.fill(work);
  expect([done, await operation()]).toEqual([
    ['fill', 'change', 'save fails', 'save'],
    ['succeeded', null],
  ]);
  await steps.fill(work);
  expect([done.length, await next()]).toEqual([4, 'rest']);
});

test('An order that is called off does not continue', async () => {
  const called = await ordered('createBranch');
  const { work, done, next, operation, callOff } = called;
  await next();
  const steps = oneAfterTheOther(environment, {
    fill: async () => void (await callOff()),
    change: async () => void done.push('change'),
  });
  await steps.fill(work);
  expect([done, await next(), await operation()]).toEqual([[], 'rest', ['cancelled', null]]);
});

test('The late end of a step is not the end of the same step later in the order', async () => {
  const { next, end, at, operation } = await ordered('pullRepository');
  const until = async (step: OrderStep) => {
    for (let now = await next(); now !== step; now = await next()) await end(now as OrderStep);
    return at();
  };
  const first = await until('save');
  await end('save', undefined, first);
  const second = await until('save');
  expect(second).toBeGreaterThan(first ?? 0);
  await end('save', undefined, first);
  await end('save', 'GIT_CONFLICT', first);
  expect([await next(), await at(), await operation()]).toEqual(['save', second, ['running', null]]);
  await end('save', undefined, second);
  expect(await operation()).toEqual(['succeeded', null]);
});

test('A failure of the same step later in the order is recorded with that step', async () => {
  const { steps, work, next, end, at, operation } = await ordered('pullRepository', { save: [refused()] });
  for (let now = await next(); now !== 'save'; now = await next()) await end(now as OrderStep);
  const first = await at();
  await end('save', undefined, first);
  for (let now = await next(); now !== 'save'; now = await next()) await end(now as OrderStep);
  // The workflow asked for the first one, and an earlier attempt has done all up to the second.
  await steps.save({ ...work, at: first });
  expect(await operation()).toEqual(['failed', 'GIT_CONFLICT']);
});
