import type { Client, WorkflowHandle } from '@temporalio/client';
import { answerToolCalls } from '../../../models/chat/answerToolCalls.ts';
import { succeededResult } from '../../../models/chat/toolResult.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { connectTemporal } from '../../../temporal/connection.ts';
import { turnWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { buildTurnLog } from '../../builders/turnLog.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Turns that continue in a new history after each step, and signals that arrive during that switch. */
let product: TestProduct;
let user: ChatUser;
let temporal: { client: Client; close(): Promise<void> };
beforeAll(async () => {
  product = await buildProduct({
    ATRIUM_MAX_HISTORY_EVENTS: '10',
    // Keeps the sweeper away, so a lost signal stays lost.
    ATRIUM_SWEEP_INTERVAL_SECONDS: '3600',
    ATRIUM_SWEEP_GRACE_SECONDS: '3600',
  });
  user = await product.user();
  temporal = await connectTemporal(product.environment.config, createLogger({ level: 'silent' }));
});
afterAll(async () => {
  await temporal.close();
  await product.close();
});

const workflowOf = (turnId: string, runId?: string): WorkflowHandle =>
  temporal.client.workflow.getHandle(turnWorkflowId(turnId), runId);
const outputsOf = async (turnId: string) =>
  toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks);

/** For each history of a turn, oldest first, the causes of its failed workflow tasks. */
async function historiesOf(turnId: string): Promise<unknown[][]> {
  const histories: unknown[][] = [];
  let { runId } = await workflowOf(turnId).describe();
  while (runId !== '') {
    const events = (await workflowOf(turnId, runId).fetchHistory()).events ?? [];
    histories.unshift(events.flatMap(({ workflowTaskFailedEventAttributes: failed }) => failed?.cause ?? []));
    runId = events[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? '';
  }
  return histories;
}

test('A long turn continues in new histories, repeats and loses nothing, and keeps its search attributes', async () => {
  const paths = ['/a', '/b', '/c'];
  const calls = paths.map((path) => ['drive_write', { path, content: path, ifExists: 'rename' }] as const);
  const { turnId, chunks } = await user.ask({ content: toolLines(calls), modelId: 'demo', mode: 'work' });
  expect(toolOutputs(chunks)).toMatchObject(paths.map((path) => ({ path, version: 1 })));
  expect(await user.turn(turnId)).toMatchObject({ status: 'completed' });
  expect(await historiesOf(turnId)).toHaveLength(4);
  const { searchAttributes } = await workflowOf(turnId).describe();
  expect(searchAttributes).toMatchObject({ SpaceId: [user.spaceId], Kind: ['turn'] });
});

const twoQuestions = toolLines([
  ['ask_user', { question: 'First?' }],
  ['ask_user', { question: 'Second?' }],
]);

/**
 * A turn whose first question is answered, and whose workflow is about to continue in a new history. Its task waits
 * until `commit`, because the test holds a lock that it needs. The task sees the statements given to `write`.
 */
async function untilAtSwitch() {
  const { turnId } = await user.ask({ content: twoQuestions, modelId: 'demo' });
  const { pendingToolCalls } = await user.turn(turnId);
  const { database } = product.environment;
  const { turnLog } = buildTurnLog(database);
  const result = succeededResult(pendingToolCalls[0]?.toolCallId ?? '', 'one');
  await answerToolCalls({ database, turnLog }, turnId, [result]);
  await turnLog.close();
  const connection = await database.pool.getConnection();
  await connection.beginTransaction();
  await connection.query('SELECT * FROM turns WHERE id = ? FOR UPDATE', [turnId]);
  const workflow = workflowOf(turnId);
  await workflow.signal('toolsAnswered');
  await waitFor('the workflow’s task', async () => {
    const { raw } = await workflow.describe();
    return raw.pendingWorkflowTask?.startedTime;
  });
  return {
    turnId,
    workflow,
    write: (sql: string) => connection.query(sql, [turnId]),
    async commit() {
      await connection.commit();
      connection.release();
    },
  };
}

/**
 * The server repeats the task with cause UNHANDLED_COMMAND, because the workflow must first see the signals that came
 * during the task.
 */
const triedAgain = expect.arrayContaining([1]);

test('A turn that gets signals during the switch goes on and receives the next answer', async () => {
  const { turnId, workflow, commit } = await untilAtSwitch();
  await Promise.all([1, 2, 3].map(() => workflow.signal('toolsAnswered')));
  await commit();
  const next = await waitFor('the second question', async () => {
    const { status, pendingToolCalls } = await user.turn(turnId);
    return status === 'waiting' && pendingToolCalls[0];
  });
  const answer = { toolResults: [{ toolUseId: next.toolCallId, content: 'two' }] };
  await user.ask(answer);
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(await outputsOf(turnId)).toEqual(['one', 'two']);
  const histories = await historiesOf(turnId);
  expect([histories.length, histories[0]]).toEqual([3, triedAgain]);
});

test('A turn that is stopped during the switch ends in the history that receives the signal', async () => {
  const { turnId, workflow, write, commit } = await untilAtSwitch();
  await workflow.signal('stopTurn');
  await write('UPDATE turns SET stop_requested_at = NOW(3) WHERE id = ?');
  await commit();
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
  expect(await outputsOf(turnId)).toEqual(['one']);
  const histories = await historiesOf(turnId);
  expect([histories.length, histories[0]]).toEqual([1, triedAgain]);
});

test('A turn that keeps continuing in new histories can be stopped at any moment', async () => {
  const many = toolLines(Array.from({ length: 30 }, (_, limit) => ['drive_list', { limit: limit + 1 }] as const));
  const turns = await Promise.all(
    Array.from({ length: 5 }, async (_, at) => {
      const stream = await user.send({ content: many, modelId: 'demo' });
      const turnId = stream.response.headers.get('x-turn-id') ?? '';
      let results = 0;
      for await (const { data } of stream.events) {
        if (!data.includes('tool-output-available') || ++results <= at) continue;
        await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
        break;
      }
      return user.ended(turnId);
    }),
  );
  expect(turns.map(({ status }) => status)).toEqual(turns.map(() => 'stopped'));
});
