import { join } from 'node:path';
import { ApplicationFailure, Context } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { createLogger } from '../../telemetry/logger.ts';
import { connectTemporal, type TemporalConnection } from '../../temporal/connection.ts';
import { changedSignal, interruptedSignal, stepQuery } from '../../workflows/actor.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { waitFor } from '../support/waitFor.ts';
import { type Next, scripted } from './actorWorkflows.ts';

let environment: TestEnvironment;
let temporal: TemporalConnection;
let worker: Worker;
let running: Promise<void>;
let taskQueue: string;

/** The looks and steps of the present test's actor, and a record of what the actor did. */
let looks: (() => Next | Promise<Next>)[];
let work: () => Promise<void>;
let isFor: () => boolean;
let done: string[];

const rest = (): Next => ({ do: 'rest' });
const step = (): Next => ({ do: 'work' });
const hour = 3_600_000;

beforeAll(async () => {
  environment = await createTestEnvironment();
  temporal = await connectTemporal(environment.config, createLogger({ level: 'silent' }));
  taskQueue = `${environment.config.installation}actor`;
  worker = await Worker.create({
    connection: temporal.native,
    namespace: environment.config.temporal.namespace,
    taskQueue,
    workflowsPath: join(import.meta.dirname, 'actorWorkflows.ts'),
    activities: {
      async look() {
        const next = await (looks.shift() ?? rest)();
        done.push(next.do);
        return next;
      },
      work: () => work(),
      ended: async (code?: string) => void done.push(code ?? 'done'),
      isFor: async () => isFor(),
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

let number = 0;
function start(
  script: typeof looks,
  acts: { work?: typeof work; isFor?: typeof isFor } = {},
): Promise<WorkflowHandle<typeof scripted>> {
  looks = [...script];
  ({ work = async () => undefined, isFor = () => true } = acts);
  done = [];
  return temporal.client.workflow.start(scripted, { workflowId: `${taskQueue}-${++number}`, taskQueue });
}

/** A gate at which `pass` waits until the test opens it. */
function gate() {
  const opened = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  return {
    async pass() {
      reached.resolve();
      await opened.promise;
    },
    reached: reached.promise,
    open: () => opened.resolve(),
  };
}

/** Works until it is cancelled. */
async function untilCancelled(reached: () => void): Promise<void> {
  const context = Context.current();
  const beat = setInterval(() => context.heartbeat(), 50);
  reached();
  await context.cancelled.finally(() => clearInterval(beat));
}

test('An actor takes steps until it rests', async () => {
  await (await start([step, step])).result();
  expect(done).toEqual(['work', 'done', 'work', 'done', 'rest']);
});

test('An actor that is told during its last look looks again', async () => {
  const { pass, reached, open } = gate();
  const handle = await start([() => pass().then(rest)]);
  await reached;
  await handle.signal(changedSignal);
  open();
  await handle.result();
  expect(done).toEqual(['rest', 'rest']);
});

test('An actor that watches looks again when it is told', async () => {
  const handle = await start([() => ({ do: 'watch', waitMs: hour })]);
  await waitFor('the watch', async () => (await handle.query(stepQuery)) === 'watch');
  await handle.signal(changedSignal);
  await handle.result();
  expect(done).toEqual(['watch', 'rest']);
});

test('An interruption during a look makes the actor look again before it begins a step', async () => {
  const { pass, reached, open } = gate();
  const handle = await start([() => pass().then(step)]);
  await reached;
  await handle.signal(interruptedSignal);
  open();
  await handle.result();
  expect(done).toEqual(['work', 'rest']);
});

test('An interruption cancels the step that it is meant for, and the end is recorded with a code', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const handle = await start([step], { work: () => untilCancelled(resolve) });
  await promise;
  await handle.signal(interruptedSignal);
  await handle.result();
  expect(done).toEqual(['work', 'INTERRUPTED', 'rest']);
});

test('An interruption that is not meant for the running step does not stop it', async () => {
  const { pass, reached, open } = gate();
  const asked = Promise.withResolvers<void>();
  const handle = await start([step], {
    work: pass,
    isFor() {
      asked.resolve();
      return false;
    },
  });
  await reached;
  await handle.signal(interruptedSignal);
  await asked.promise;
  open();
  await handle.result();
  expect(done).toEqual(['work', 'done', 'rest']);
});

test('An actor pauses after a failed step, unless it is told to look', async () => {
  const refuse = async () => {
    throw ApplicationFailure.create({ type: 'REFUSED', nonRetryable: true });
  };
  const handle = await start([() => ({ do: 'work', pauseMs: hour })], { work: refuse });
  await waitFor('the failure', () => done.includes('REFUSED'));
  await handle.signal(changedSignal);
  await handle.result();
  expect(done).toEqual(['work', 'REFUSED', 'rest']);
});

test('An actor that an operator cancels during a step ends as cancelled and records no end', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const handle = await start([step], { work: () => untilCancelled(resolve) });
  await promise;
  await handle.cancel();
  await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
  expect(done).toEqual(['work']);
});
