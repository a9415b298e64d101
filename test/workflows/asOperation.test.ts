import { join } from 'node:path';
import { ApplicationFailure, Context } from '@temporalio/activity';
import type { WorkflowFailedError } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { createLogger } from '../../telemetry/logger.ts';
import { connectTemporal, type TemporalConnection } from '../../temporal/connection.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { type Outcome, operate } from './operationWorkflows.ts';

let environment: TestEnvironment;
let temporal: TemporalConnection;
let worker: Worker;
let running: Promise<void>;
const ends: unknown[] = [];
const begun = new Map<string, () => void>();
const taskQueue = 'as-operation';

beforeAll(async () => {
  environment = await createTestEnvironment();
  temporal = await connectTemporal(environment.config, createLogger({ level: 'silent' }));
  worker = await Worker.create({
    connection: temporal.native,
    namespace: environment.config.temporal.namespace,
    taskQueue: environment.config.installation + taskQueue,
    workflowsPath: join(import.meta.dirname, 'operationWorkflows.ts'),
    activities: {
      async work(outcome: Outcome) {
        if (outcome === 'failed') throw ApplicationFailure.nonRetryable('It cannot be done.');
        if (outcome !== 'cancelled') return;
        const context = Context.current();
        context.heartbeat();
        begun.get(context.info.workflowExecution?.workflowId ?? '')?.();
        const beat = setInterval(() => context.heartbeat(), 50);
        await context.cancelled.finally(() => clearInterval(beat));
      },
      async endOperation(end: unknown) {
        ends.push(end);
      },
    },
    maxHeartbeatThrottleInterval: 50,
    defaultHeartbeatThrottleInterval: 50,
  });
  running = worker.run();
});

afterAll(async () => {
  worker.shutdown();
  await running;
  await temporal.close();
  await environment.close();
});

function start(outcome: Outcome) {
  ends.length = 0;
  return temporal.client.workflow.start(operate, {
    workflowId: `${environment.config.installation}-${outcome}`,
    taskQueue: environment.config.installation + taskQueue,
    args: [outcome],
  });
}

test.each([
  ['nothing', [{ operationId: 'op_1', end: { status: 'succeeded' } }]],
  ['result', [{ operationId: 'op_1', end: { status: 'succeeded', result: { itemId: 'itm_1' } } }]],
  ['ended', []],
] as const)('Work with outcome "%s" records the expected end', async (outcome, expected) => {
  await (await start(outcome)).result();
  expect(ends).toEqual(expected);
});

test('Work that fails for good ends its operation as failed, not as cancelled, and fails the workflow', async () => {
  const handle = await start('failed');
  await expect(handle.result()).rejects.toThrow('Workflow execution failed');
  expect(ends).toMatchObject([{ operationId: 'op_1', end: { status: 'failed', code: 'OPERATION_FAILED' } }]);
});

test('Work that is cancelled ends its operation as cancelled', async () => {
  const isWorking = new Promise<void>((resolve) => begun.set(`${environment.config.installation}-cancelled`, resolve));
  const handle = await start('cancelled');
  await isWorking;
  await handle.cancel();
  const error = (await handle.result().catch((reason: unknown) => reason)) as WorkflowFailedError;
  expect(error.cause?.name).toBe('CancelledFailure');
  expect(ends).toEqual([{ operationId: 'op_1', end: { status: 'cancelled' } }]);
});
