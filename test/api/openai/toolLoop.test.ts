import { type ChatUser, toolsNamed } from '../../builders/chat.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

// A client runs its tools between two requests. Each request says what the model sees, whatever the thread has.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

interface Message {
  role: string;
  content?: string | null;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

interface Refusal {
  error?: { code: string };
}

const call = { id: 'call-1', name: 'look_up', arguments: '{"of":"Ada"}' };

async function complete(messages: Message[], more: object = {}, headers: Record<string, string> = {}) {
  const body = { model: 'fake-1', messages, tools: toolsNamed('look_up'), ...more };
  const response = await user.fetch('/v1/chat/completions', { method: 'POST', body, headers });
  const answer = (await response.json()) as { choices: { message: Message; finish_reason: string }[] };
  expect({ status: response.status, answer }).toMatchObject({ status: 200 });
  const [choice] = answer.choices;
  return {
    message: choice?.message ?? { role: 'assistant' },
    finish: choice?.finish_reason,
    threadId: response.headers.get('x-thread-id') ?? '',
    turnId: response.headers.get('x-turn-id') ?? '',
  };
}

/** A question, and the answer that calls the client's tool. */
async function asked(text: string, more: object = {}, toolCalls = [call]) {
  const question = { role: 'user', content: fake({ tokens: ['Wait.'], toolCalls }, text) };
  const first = await complete([question], more);
  expect(first.finish).toBe('tool_calls');
  const results = (content: string) =>
    (first.message.tool_calls ?? []).map(({ id }) => ({ role: 'tool', tool_call_id: id, content }));
  return { ...first, question, results };
}

test('The request with the results brings its own instructions, tools, settings and model', async () => {
  const { question, message, results, threadId } = await asked('Hand me over', {});
  const handoff = [{ role: 'system', content: 'You are the second agent.' }, question, message];
  const second = await complete([...handoff, ...results('Transferred to the second agent.')], {
    tools: toolsNamed('refund'),
    tool_choice: 'required',
    temperature: 0.25,
    response_format: { type: 'json_object' },
  });
  expect(second.threadId).toBe(threadId);
  const [request] = requestsWith(product.provider, 'Transferred to the second agent.');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool']);
  expect(request?.body).toMatchObject({
    model: 'fake-1',
    temperature: 0.25,
    tool_choice: 'required',
    response_format: { type: 'json_object' },
  });
  expect(JSON.stringify(request?.body.messages)).toContain('You are the second agent.');
  expect(request?.body.tools).toMatchObject([{ function: { name: 'refund' } }]);

  const { question: again, message: reply, results: bring } = await asked('Change the model');
  const other = await complete([again, reply, ...bring('By another model')], { model: 'demo' });
  expect((await user.turn(other.turnId)).modelId).toBe('demo');
});

test('A loop of several calls is one thread, and a message after it goes on there', async () => {
  const first = await asked('The first round');
  const next = fake({ tokens: ['Once more.'], toolCalls: [{ ...call, id: 'call-2' }] }, 'The first result');
  const messages = [first.question, first.message, ...first.results(next)];
  const second = await complete(messages);
  expect([second.finish, second.threadId]).toEqual(['tool_calls', first.threadId]);
  const id = second.message.tool_calls?.[0]?.id ?? '';
  messages.push(second.message, { role: 'tool', tool_call_id: id, content: 'The second result' });
  const third = await complete(messages);
  expect([third.finish, third.threadId]).toEqual(['stop', first.threadId]);
  expect(rolesOf(requestsWith(product.provider, 'The second result')[0])).toEqual([
    ...['system', 'user', 'assistant', 'tool', 'assistant', 'tool'],
  ]);
  messages.push(third.message, { role: 'user', content: 'A last question' });
  expect((await complete(messages)).threadId).toBe(first.threadId);
  expect(rolesOf(requestsWith(product.provider, 'A last question')[0])).toEqual([
    ...['system', 'user', 'assistant', 'tool', 'assistant', 'tool', 'assistant', 'user'],
  ]);
});

test.each<[string, (question: Message, message: Message) => Message[], string[]]>([
  [
    'compacted',
    (_question, message) => [{ role: 'user', content: 'In short: look up Ada.' }, message],
    ['system', 'user', 'assistant', 'tool'],
  ],
  [
    'extended',
    (question, message) => [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello' },
      question,
      message,
    ],
    ['system', 'user', 'assistant', 'user', 'assistant', 'tool'],
  ],
  [
    'changed in its call',
    (question, { tool_calls: calls = [], ...message }) => [
      question,
      { ...message, tool_calls: calls.map((one) => ({ ...one, function: { ...one.function, arguments: '{}' } })) },
    ],
    ['system', 'user', 'assistant', 'tool'],
  ],
])('A history that was %s between the requests becomes another thread', async (name, change, roles) => {
  const { question, message, results, threadId } = await asked(`To be ${name}`);
  const second = await complete([...change(question, message), ...results(`Looked up, ${name}`)]);
  expect([second.finish, second.threadId === threadId]).toEqual(['stop', false]);
  const [request] = requestsWith(product.provider, `Looked up, ${name}`);
  expect(rolesOf(request)).toEqual(roles);
  // The first thread can still go on by itself.
  const own = await complete([question, message, ...results('For the first thread')]);
  expect(own.threadId).toBe(threadId);
});

test('Other results for the same calls begin another thread, and the same ones get the same answer', async () => {
  const { question, message, results, threadId } = await asked('Twice');
  const first = await complete([question, message, ...results('Result one')]);
  const other = await complete([question, message, ...results('Result two')]);
  const again = await complete([question, message, ...results('Result one')]);
  expect(first.threadId).toBe(threadId);
  expect(other.threadId).not.toBe(threadId);
  expect(again.turnId).toBe(first.turnId);
  expect(requestsWith(product.provider, 'Result one')).toHaveLength(1);
});

test('The same results at the same time are answered once', async () => {
  const { question, message, results } = await asked('All at once');
  const messages = [question, message, ...results('Result at once')];
  const answers = await Promise.all(Array.from({ length: 5 }, () => complete(messages)));
  expect(new Set(answers.map(({ turnId }) => turnId)).size).toBe(1);
  expect(requestsWith(product.provider, 'Result at once')).toHaveLength(1);
});

test('A request whose turn failed can be sent again', async () => {
  const { question, message, results } = await asked('Fails once');
  const body = { model: 'fake-1', messages: [question, message, ...results('Result of a failure')] };
  product.provider.enqueue({ status: 400 });
  const failed = await user.fetch('/v1/chat/completions', { method: 'POST', body });
  expect(failed.status).toBe(400);
  expect((await user.fetch('/v1/chat/completions', { method: 'POST', body })).status).toBe(200);
});

test('In a named thread the results alone are enough, and go nowhere else', async () => {
  const metadata = { thread_id: 'named-loop' };
  const { results, threadId } = await asked('In a named thread', { metadata });
  const body = { model: 'fake-1', messages: results('Alone') };
  const elsewhere = await asked('In another named thread', { metadata: { thread_id: 'other-loop' } });
  const refused = await user.fetch('/v1/chat/completions', {
    method: 'POST',
    body: { ...body, metadata: { thread_id: 'other-loop' } },
  });
  expect(await refused.json()).toMatchObject({ error: { code: 'TOOL_RESULT_UNKNOWN' } });
  expect((await complete(results('Alone'), { metadata })).threadId).toBe(threadId);
  expect(rolesOf(requestsWith(product.provider, 'Alone')[0])).toEqual(['system', 'user', 'assistant', 'tool']);
  // The other thread still waits for its own.
  expect((await complete(elsewhere.results('Also alone'))).threadId).toBe(elsewhere.threadId);
});

test('Different results alone, at the same time: one is answered, and the other is no thread without its question', async () => {
  const { results } = await asked('One of two');
  const send = (content: string) =>
    user.fetch('/v1/chat/completions', { method: 'POST', body: { model: 'fake-1', messages: results(content) } });
  const answers = await Promise.all(['First of two', 'Second of two'].map(send));
  const said = await Promise.all(answers.map(async (one) => [one.status, ((await one.json()) as Refusal).error?.code]));
  expect(said).toContainEqual([200, undefined]);
  // Depends on whether the other one was accepted before this one was read.
  const refused = expect.stringMatching(/^(THREAD_HAS_GONE_ON|TOOL_RESULT_UNKNOWN)$/);
  expect(said).toContainEqual([expect.any(Number), refused]);
  const requests = [
    ...requestsWith(product.provider, 'First of two'),
    ...requestsWith(product.provider, 'Second of two'),
  ];
  expect(requests.map(rolesOf)).toEqual([['system', 'user', 'assistant', 'tool']]);
});

test('Results with a message of the user are answered together', async () => {
  const { question, message, results, threadId } = await asked('With a message');
  const second = await complete([question, message, ...results('It is late.'), { role: 'user', content: 'Hurry up' }]);
  expect(second.threadId).toBe(threadId);
  expect(rolesOf(requestsWith(product.provider, 'Hurry up')[0])).toEqual([
    'system',
    'user',
    'assistant',
    'tool',
    'user',
  ]);
});

test('Results of an unlisted conversation stay unlisted', async () => {
  const { question, message, results, threadId } = await asked('Not kept', { store: false });
  const second = await complete([question, message, ...results('Nor this')], { store: false });
  expect(second.threadId).toBe(threadId);
  const kept = await complete([question, message, ...results('But this')]);
  expect(kept.threadId).not.toBe(threadId);
});

test('Secrets of the space are removed from results', async () => {
  await user.fetch(`/api/spaces/${user.spaceId}/secrets/LOOP_WORD`, {
    method: 'PUT',
    body: { value: 'sesame-loop-77' },
  });
  const { question, message, results, threadId } = await asked('With a secret');
  const messages = [question, message, ...results('The word is sesame-loop-77, in a result')];
  expect((await complete(messages)).threadId).toBe(threadId);
  const [request] = requestsWith(product.provider, ', in a result');
  expect(JSON.stringify(request?.body.messages)).not.toContain('sesame-loop-77');
});

test.each<[string, object, string]>([
  ['was edited', {}, 'A question that was edited'],
  ['is not kept', { store: false }, 'A question that is not kept'],
])('Secrets of the space are removed from results in a conversation that %s', async (_name, more, text) => {
  await user.fetch(`/api/spaces/${user.spaceId}/secrets/EDITED_WORD`, {
    method: 'PUT',
    body: { value: 'sesame-edited-78' },
  });
  const { message, results, threadId } = await asked('With a secret elsewhere');
  const question = { role: 'user', content: text };
  const messages = [question, message, ...results(`The word is sesame-edited-78, for: ${text}`)];
  const second = await complete(messages, more);
  expect(second.threadId).not.toBe(threadId);
  const [request] = requestsWith(product.provider, `for: ${text}`);
  expect(JSON.stringify(request?.body.messages)).toContain('The word is [redacted]');
  expect(JSON.stringify(await user.messages(second.threadId))).not.toContain('sesame-edited-78');
  // The client still has what it sent, and goes on with it.
  const third = await complete([...messages, second.message, { role: 'user', content: `Next to: ${text}` }], more);
  expect(third.threadId === second.threadId).toBe(!('store' in more));
  const [next] = requestsWith(product.provider, `Next to: ${text}`);
  expect(JSON.stringify(next?.body.messages)).not.toContain('sesame-edited-78');
});

test('Calls of the client and tools of the space in one step: the client gets its calls when the others are done', async () => {
  const drive = { id: 'call-9', name: 'drive_list', arguments: '{}' };
  const { question, message, results } = await asked('Both', { metadata: { server_tools: 'on' } }, [call, drive]);
  expect(message.tool_calls).toHaveLength(1);
  await complete([question, message, ...results('From the client')], { metadata: { server_tools: 'on' } });
  // The thread has what the client was not shown.
  const request = product.provider.requests.find(({ body }) => JSON.stringify(body).includes('From the client'));
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool', 'tool']);
});

test('A call that a person must allow holds up the answer, and results that come too early are refused', async () => {
  const dangerous = { id: 'call-9', name: 'drive_delete', arguments: '{"path":"/none.txt"}' };
  const metadata = { mode: 'work' };
  const answering = asked('With an approval', { metadata }, [call, dangerous]);
  const turnId = await waitFor('the turn to wait', async () => {
    const path = `/api/spaces/${user.spaceId}/threads?needsInput=true`;
    return (await user.get<{ data: { activeTurnId: string }[] }>(path)).data[0]?.activeTurnId;
  });
  const waiting = (await user.turn(turnId)).pendingToolCalls;
  const idOf = (name: string) => waiting.find(({ toolName }) => toolName === name)?.toolCallId ?? '';
  const early = { role: 'tool', tool_call_id: idOf('look_up'), content: 'Too early' };
  const refused = await user.fetch('/v1/chat/completions', {
    method: 'POST',
    body: { model: 'fake-1', messages: [early] },
  });
  expect([refused.status, await refused.json()]).toMatchObject([409, { error: { code: 'TURN_NOT_ENDED' } }]);
  await user.fetch(`/chat/turns/${turnId}/approvals/${idOf('drive_delete')}`, {
    method: 'POST',
    body: { approved: false },
  });
  const { question, message, results, finish } = await answering;
  expect([finish, message.tool_calls?.length]).toEqual(['tool_calls', 1]);
  expect((await complete([question, message, ...results('In time')], { metadata })).finish).toBe('stop');
});

test('A turn that an earlier version left waiting for its client goes on with the results', async () => {
  const { question, message, results, turnId, threadId } = await asked('Left waiting');
  const { pool } = product.environment.database;
  await pool.query("UPDATE turns SET status = 'waiting', terminal = 0, ended_at = NULL WHERE id = ?", [turnId]);
  await pool.query('UPDATE threads SET active_turn_id = ? WHERE id = ?', [turnId, threadId]);
  await pool.query('DELETE FROM messages WHERE turn_id = ? AND position = 1', [turnId]);
  const next = await complete([question, message, ...results('After the upgrade')]);
  expect([next.finish, next.threadId]).toEqual(['stop', threadId]);
  expect(await user.turn(turnId)).toMatchObject({ status: 'completed', finishReason: 'tool-calls' });
});
