import { answerToolCalls } from '../../../models/chat/answerToolCalls.ts';
import { succeededResult } from '../../../models/chat/toolResult.ts';
import type { UiChunk } from '../../../models/chat/turnLog/chunks.ts';
import { asUser, type ChatUser, idsOf, type ThreadBody, textOf } from '../../builders/chat.ts';
import { buildProduct, requestsWith, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { buildTurnLog } from '../../builders/turnLog.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { type Collected, collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct(hurriedSweeper);
  user = await product.user();
});
afterAll(() => product.close());

const question = toolLines([['ask_user', { question: 'Which colour?', options: ['red', 'blue'] }]]);
const paint = { name: 'paint', description: 'Paints.', inputSchema: { type: 'object' } };

/** The ids of the calls that a stream has shown. */
const callsIn = ({ chunks }: { chunks: readonly UiChunk[] }): string[] =>
  chunks.flatMap((chunk) => (chunk.type === 'tool-input-available' ? [chunk.toolCallId] : []));

async function asked(content = question, more: Record<string, unknown> = {}) {
  const answer = await user.ask({ content, modelId: 'demo', ...more });
  expect(answer.chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' });
  return { ...answer, callIds: callsIn(answer) };
}

const result = (toolUseId = '', content = 'blue', more = {}) => ({ toolResults: [{ toolUseId, content, ...more }] });

async function refusal(as: ChatUser, body: object) {
  const response = await as.fetch('/chat/stream', { method: 'POST', body });
  return [response.status, ((await response.json()) as { code: string }).code];
}

test('A question asked on one device is answered on another after a restart', async () => {
  const first = await asked();
  const { turnId, threadId, callIds } = first;
  expect(await user.turn(turnId)).toMatchObject({
    status: 'waiting',
    endedAt: null,
    pendingToolCalls: [
      { toolCallId: callIds[0], toolName: 'ask_user', waitsFor: 'client', input: { question: 'Which colour?' } },
    ],
  });
  const listed = async (query: string) =>
    (await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads?${query}`)).data;
  expect(await user.get(`/api/threads/${threadId}`)).toMatchObject({ needsInput: true, activeTurnId: turnId });
  expect(await listed('needsInput=true')).toMatchObject([{ id: threadId, needsInput: true }]);
  expect(await listed('needsInput=false')).toEqual([]);
  // A client that looks later sees the open question too.
  expect((await collect(await user.open(`/chat/stream/${threadId}/stream`))).events).toEqual(first.events);

  await product.process.stop();
  await product.restart();
  const phone = asUser(product, { ...user, token: await product.identity.sessions.create(user.id) });
  expect(await phone.turn(turnId)).toMatchObject({ status: 'waiting' });
  const second = await phone.ask({ threadId, ...result(callIds[0]) });
  expect([second.turnId, second.complete]).toEqual([turnId, true]);
  expect(second.chunks.slice(0, 3)).toMatchObject([
    { type: 'start', messageMetadata: { turnId } },
    { type: 'data-turn', data: { status: 'running' } },
    { type: 'tool-output-available', toolCallId: callIds[0], output: 'blue' },
  ]);
  expect(second.chunks[0]).not.toHaveProperty('messageId');
  expect(second.text).toBe('ask_user: blue');

  // The laptop reads on from its position, and both streams together are the whole message.
  const whole = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(whole.events).toEqual([...first.events.slice(0, -1), ...second.events]);
  const turn = await user.turn(turnId);
  expect(turn).toMatchObject({ status: 'completed', pendingToolCalls: [] });
  const [, answer] = await user.messages(threadId);
  expect(answer).toMatchObject({
    id: turn.assistantMessageId,
    parts: expect.arrayContaining([
      expect.objectContaining({ type: 'dynamic-tool', state: 'output-available', output: 'blue' }),
    ]),
  });
  expect(await listed('needsInput=true')).toEqual([]);
});

test('Repeated and concurrent results of a call count once and get the same stream', async () => {
  const { callIds, threadId, turnId } = await asked();
  const sends = await Promise.all([1, 2, 3].map((n) => user.ask({ threadId, ...result(callIds[0], `answer ${n}`) })));
  const again = await user.ask(result(callIds[0], 'another'));
  for (const { events } of sends) expect(events).toEqual(again.events);
  const whole = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(toolOutputs(whole.chunks)).toEqual([expect.stringMatching(/^answer [123]$/)]);
});

test('The model is told about an error or a timeout that the client reports', async () => {
  const failing = await asked();
  const failed = await user.ask(result(failing.callIds[0], 'no such colour', { isError: true }));
  expect(failed.text).toBe('ask_user: no such colour');
  const timing = await asked();
  const timed = await user.ask(result(timing.callIds[0], '', { isTimeout: true }));
  expect(timed.text).toBe('ask_user: The client did not answer in time.');
});

test('A client tool times out at its deadline, and a later result changes nothing', async () => {
  const { callIds, turnId } = await asked('/tool paint {}', { clientTools: [{ ...paint, timeoutSeconds: 1 }] });
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  const late = await user.ask(result(callIds[0], 'late'));
  expect(late.chunks.slice(0, 3)).toMatchObject([
    { type: 'start' },
    { type: 'data-turn' },
    { type: 'tool-output-error', errorText: 'The client did not answer in time.' },
  ]);
  expect(late.text).toBe('paint: The client did not answer in time.');
});

test('A turn waits for the results of all calls of a step', async () => {
  const two = '/tool paint {"n":1}\n/tool paint {"n":2}\n/tool drive_list {}';
  const { callIds, chunks, turnId } = await asked(two, { clientTools: [paint] });
  // The server's own tool did not wait.
  expect(toolOutputs(chunks)).toMatchObject([undefined, undefined, { path: '/' }]);
  const one = await user.ask(result(callIds[1], 'two'));
  expect(one.chunks.map(({ type }) => type)).toEqual(['start', 'tool-output-available', 'finish']);
  expect(one.chunks.at(-1)).toMatchObject({ finishReason: 'tool-calls' });
  expect(await user.turn(turnId)).toMatchObject({ status: 'waiting', pendingToolCalls: [{ toolCallId: callIds[0] }] });
  const other = await user.ask(result(callIds[0], 'one'));
  expect(other.text).toMatch(/^paint: one\npaint: two\ndrive_list: /);
  expect(await user.turn(turnId)).toMatchObject({ status: 'completed' });
});

test('Results for calls that are not waiting are refused', async () => {
  const { callIds, threadId, chunks } = await asked('/tool drive_list {}\n/tool paint {}', { clientTools: [paint] });
  const [listId = '', paintId] = callIds;
  expect(toolOutputs(chunks)[0]).toMatchObject({ path: '/' });
  const stranger = await product.user();
  const other = await user.ask({ content: 'another thread' });
  expect(await refusal(user, result('tcl_none'))).toEqual([422, 'TOOL_RESULT_UNKNOWN']);
  expect(await refusal(user, result(listId))).toEqual([422, 'TOOL_RESULT_UNKNOWN']);
  expect(await refusal(stranger, result(paintId))).toEqual([422, 'TOOL_RESULT_UNKNOWN']);
  expect(await refusal(stranger, { threadId, ...result(paintId) })).toEqual([403, 'NOT_THREAD_OWNER']);
  expect(await refusal(user, { threadId: other.threadId, ...result(paintId) })).toEqual([422, 'TOOL_RESULT_UNKNOWN']);
  expect(await refusal(user, { toolResults: [...result(paintId).toolResults, ...result('x').toolResults] })).toEqual([
    422,
    'TOOL_RESULT_UNKNOWN',
  ]);
  // None of these results was accepted.
  expect((await user.ask(result(paintId, 'taken'))).text).toMatch(/paint: taken$/);
});

test('A body of the AI SDK sends results in the parts of its last message', async () => {
  const { callIds, threadId, turnId } = await asked();
  const parts = [
    {
      type: 'dynamic-tool',
      toolName: 'ask_user',
      toolCallId: callIds[0],
      state: 'output-available',
      output: { colour: 'red' },
    },
  ];
  const messages = [
    { id: 'u', role: 'user', parts: [{ type: 'text', text: question }] },
    { id: 'a', role: 'assistant', parts },
  ];
  const answer = await user.ask({ id: threadId, messages, trigger: 'submit-message' });
  expect([answer.turnId, answer.text]).toEqual([turnId, 'ask_user: {"colour":"red"}']);
});

test('A message sent with the results starts the next turn', async () => {
  const { callIds, threadId, turnId } = await asked();
  const next = await user.ask({ threadId, ...result(callIds[0]), content: 'And now?', modelId: 'fake-1' });
  expect(next.turnId).not.toBe(turnId);
  expect(next.text).toBe('Hello from the fake provider.');
  expect(await user.turn(turnId)).toMatchObject({ status: 'completed' });
});

test('A waiting turn can be stopped, and interrupted by the next message', async () => {
  const stopped = await asked();
  await user.fetch(`/chat/turns/${stopped.turnId}/stop`, { method: 'POST' });
  expect(await user.ended(stopped.turnId)).toMatchObject({ status: 'stopped' });
  const late = await user.ask(result(stopped.callIds[0]));
  expect(late.complete).toBe(true);
  const interrupted = await asked();
  const { threadId } = interrupted;
  const next = await user.ask({ content: 'Never mind', threadId, onBusy: 'interrupt', modelId: 'fake-1' });
  expect(next.text).toBe('Hello from the fake provider.');
  expect(await user.turn(interrupted.turnId)).toMatchObject({ status: 'stopped', pendingToolCalls: [] });
});

test('The model is offered the sender’s device, tabs and client tools, as the mode allows', async () => {
  const offered = async (body: Record<string, unknown>) => {
    const content = `offer ${JSON.stringify(body).length} ${Math.random()}`;
    await user.ask({ content, modelId: 'fake-1', ...body });
    const [request] = requestsWith(product.provider, content);
    return ((request?.body.tools ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name);
  };
  const openTabs = [{ paneId: 'p', isActive: true, tabs: [] }];
  expect(await offered({})).not.toEqual(expect.arrayContaining(['device_read']));
  const all = await offered({ mode: 'work', deviceComputerId: 'cmp_1', openTabs, clientTools: [paint] });
  expect(all).toEqual(expect.arrayContaining(['device_read', 'device_exec', 'tabs_read', 'tabs_open', 'paint']));
  const reading = await offered({ mode: 'ask', deviceComputerId: 'cmp_1', openTabs, clientTools: [paint] });
  expect(reading).toEqual(expect.arrayContaining(['device_read', 'tabs_read', 'paint']));
  expect(reading).not.toEqual(expect.arrayContaining(['device_exec']));
});

test('A call with invalid input or without a client fails at once and does not wait', async () => {
  const answer = await user.ask({ content: '/tool ask_user {}\n/tool device_read {"path":"/x"}', modelId: 'demo' });
  expect(toolOutputs(answer.chunks)).toEqual([
    "error: The input of the tool is not valid: it must have required property 'question'.",
    'error: There is no tool named device_read.',
  ]);
});

test.each([
  ['drive_read', 'TOOL_NAME_RESERVED'],
  ['mcp_x', 'TOOL_NAME_RESERVED'],
])('A client tool cannot be named %s', async (name, code) => {
  expect(await refusal(user, { content: 'x', clientTools: [{ ...paint, name }] })).toEqual([422, code]);
});

test('Two client tools cannot have the same name', async () => {
  expect(await refusal(user, { content: 'x', clientTools: [paint, paint] })).toEqual([422, 'TOOL_NAME_TAKEN']);
});

test('A large result is stored as a file of the thread, and secrets are removed from results', async () => {
  const secret = { value: 'open-sesame-42' };
  await user.fetch(`/api/spaces/${user.spaceId}/secrets/MAGIC_WORD`, { method: 'PUT', body: secret });
  const {
    callIds: [wordId],
  } = await asked();
  expect(JSON.stringify(await user.ask(result(wordId, 'open-sesame-42!')))).not.toContain('open-sesame');
  const { callIds, threadId } = await asked();
  const answer: Collected = await user.ask(result(callIds[0], 'x'.repeat(100_000)));
  expect(toolOutputs(answer.chunks)).toMatchObject([{ isLarge: true, bytes: 100_000 }]);
  const [, message] = await user.messages(threadId);
  const part = message?.parts.find(({ type }) => type === 'dynamic-tool');
  expect(part).toMatchObject({
    output: { isLarge: true, bytes: 100_000, file: { path: `/tool-results/${callIds[0]}.txt` } },
  });
  const reading = toolLines([['drive_read', { path: `/tool-results/${callIds[0]}.txt`, container: 'thread' }]]);
  const read = await user.ask({ content: reading, modelId: 'demo', threadId });
  expect(toolOutputs(read.chunks)).toMatchObject([{ sizeBytes: 100_000 }]);
  expect(textOf(message?.parts ?? []).length).toBeLessThan(10_000);
});

test('The sweeper finds a result whose signal was lost', async () => {
  const { callIds, turnId } = await asked();
  const { turnLog } = buildTurnLog(product.environment.database);
  const deps = { database: product.environment.database, turnLog };
  await answerToolCalls(deps, turnId, [succeededResult(callIds[0] ?? '', 'unheard')]);
  await turnLog.close();
  const turn = await waitFor('the turn to end', async () => {
    const now = await user.turn(turnId);
    return now.endedAt !== null && now;
  });
  expect(await user.answerOf(turn)).toBe('ask_user: unheard');
  expect(idsOf(await user.open(`/chat/turns/${turnId}/stream`)).turnId).toBe(turnId);
});
