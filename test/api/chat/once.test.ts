import { QueryTypes } from 'sequelize';
import { type ChatUser, idsOf, textOf } from '../../builders/chat.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../../builders/product.ts';
import { collect, openStream } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

/** The same message, sent again: by a client that lost its answer, by two devices, by a hundred requests at once. */
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

async function count(table: 'turns' | 'threads' | 'messages', userId: string): Promise<number> {
  const [row] = await product.environment.database.sequelize.query<{ n: number }>(
    table === 'messages'
      ? 'SELECT COUNT(*) AS n FROM messages JOIN threads ON threads.id = thread_id WHERE user_id = ?'
      : `SELECT COUNT(*) AS n FROM ${table} WHERE user_id = ?`,
    { replacements: [userId], type: QueryTypes.SELECT },
  );
  return row?.n ?? -1;
}

test.each([
  ['an outboxItemId', { outboxItemId: 'out-100' }],
  ['a chat id and a message id of the client’s own', { id: 'chat-100', userMessageId: 'um-100' }],
])(
  '100 simultaneous requests with %s make one turn, one provider request and one answer',
  async (name, ids) => {
    const sender = await product.user();
    const content = fake({ tokens: 20, intervalMs: 10 }, `hundred by ${name}`);
    const answers = await Promise.all(Array.from({ length: 100 }, () => sender.ask({ ...ids, content })));

    expect(new Set(answers.map(({ turnId }) => turnId)).size).toBe(1);
    expect(answers.every(({ complete }) => complete)).toBe(true);
    const events = new Set(answers.map((answer) => JSON.stringify(answer.events)));
    expect(events.size).toBe(1);
    expect(requestsWith(product.provider, `hundred by ${name}`)).toHaveLength(1);
    expect(await count('turns', sender.id)).toBe(1);
    expect(await count('threads', sender.id)).toBe(1);
    expect(await count('messages', sender.id)).toBe(2);
  },
  60_000,
);

test('A repeated outbox item attaches to its turn, also later and from another pane', async () => {
  const first = await user.ask({ content: 'Once', outboxItemId: 'out-1' });
  const openTabs = [{ paneId: 'left', isActive: true, tabs: [] }];
  const second = await user.ask({ content: 'Once', outboxItemId: 'out-1', threadId: first.threadId, openTabs });
  expect(second).toMatchObject({ turnId: first.turnId, threadId: first.threadId, events: first.events });
});

test('A repeat that spells out the defaults is the same message', async () => {
  const first = await user.ask({ content: 'Plain', outboxItemId: 'defaults' });
  const defaults = { mode: 'ask', modelId: null, autoModel: false, effort: null, files: [] };
  const second = await user.ask({ content: 'Plain', outboxItemId: 'defaults', ...defaults });
  expect(second.turnId).toBe(first.turnId);
});

test('an outbox item of an AI SDK client attaches with any history, and is 422 with another last message', async () => {
  const ids = { id: 'sdk-chat', outboxItemId: 'sdk', trigger: 'submit-message' };
  const asked = (id: string, text: string) => ({ id, role: 'user', parts: [{ type: 'text', text }] });
  const last = asked('m2', 'Last');
  const first = await user.ask({ ...ids, messages: [last] });
  const again = await user.ask({ ...ids, messages: [asked('m1', 'Earlier'), last] });
  expect(again.turnId).toBe(first.turnId);
  const body = { ...ids, messages: [asked('m2', 'Changed')] };
  const changed = await user.fetch('/chat/stream', { method: 'POST', body });
  expect([changed.status, await changed.json()]).toEqual([
    422,
    expect.objectContaining({ code: 'OUTBOX_ITEM_REUSED' }),
  ]);
});

test('An outbox item from before hashes were stored attaches', async () => {
  const first = await user.ask({ content: 'Old', outboxItemId: 'hashless' });
  await product.environment.database.sequelize.query('UPDATE turns SET outbox_hash = NULL WHERE id = ?', {
    replacements: [first.turnId],
  });
  expect((await user.ask({ content: 'Old', outboxItemId: 'hashless' })).turnId).toBe(first.turnId);
});

test.each([
  ['other words', { content: 'Quite different' }],
  ['another mode', { content: 'Said', mode: 'work' }],
  ['another model', { content: 'Said', modelId: 'demo' }],
])('an outbox item with %s is 422, and nothing is done', async (what, changed) => {
  const outboxItemId = `changed by ${what}`;
  const { turnId } = await user.ask({ content: 'Said', outboxItemId });
  const response = await user.fetch('/chat/stream', { method: 'POST', body: { ...changed, outboxItemId } });
  expect([response.status, await response.json()]).toEqual([
    422,
    expect.objectContaining({
      code: 'OUTBOX_ITEM_REUSED',
      errors: [expect.objectContaining({ pointer: '/outboxItemId' })],
    }),
  ]);
  expect((await user.ask({ content: 'Said', outboxItemId })).turnId).toBe(turnId);
  expect(requestsWith(product.provider, 'Quite different')).toEqual([]);
});

test('The same outboxItemId of two users makes two turns', async () => {
  const other = await product.user();
  const [mine, theirs] = await Promise.all([
    user.ask({ content: 'Mine', outboxItemId: 'out-2' }),
    other.ask({ content: 'Theirs', outboxItemId: 'out-2' }),
  ]);
  expect(theirs.turnId).not.toBe(mine.turnId);
});

test('404 for a repeated outbox item whose sender has left the space', async () => {
  const [sender, host] = [await product.user(), await product.user()];
  await product.identity.members.add(host.spaceId, sender.email, 'editor');
  await sender.ask({ content: 'There', spaceId: host.spaceId, outboxItemId: 'out-3' });
  await product.identity.members.remove(host.spaceId, sender.id);
  // A process remembers a membership for a second.
  const again = await waitFor('the membership to be forgotten', async () => {
    const body = { content: 'There', outboxItemId: 'out-3' };
    const response = await sender.fetch('/chat/stream', { method: 'POST', body });
    if (response.status !== 200) return response;
    await response.body?.cancel();
    return false;
  });
  expect([again.status, await again.json()]).toEqual([404, expect.objectContaining({ code: 'NOT_FOUND' })]);
});

test('A repeated userMessageId attaches to its turn, and in another thread it is another message', async () => {
  const first = await user.ask({ content: 'Named', userMessageId: 'same' });
  const again = await user.ask({ content: 'Named', userMessageId: 'same', threadId: first.threadId });
  expect(again.turnId).toBe(first.turnId);
  expect(again.events).toEqual(first.events);
  const elsewhere = await user.ask({ content: 'Named', userMessageId: 'same' });
  expect(elsewhere.turnId).not.toBe(first.turnId);
});

test('409 for a userMessageId that an assistant’s message has', async () => {
  const { threadId, turnId } = await user.ask({ content: 'Who are you?' });
  const { assistantMessageId } = await user.turn(turnId);
  const body = { content: 'x', threadId, userMessageId: assistantMessageId };
  const response = await user.fetch('/chat/stream', { method: 'POST', body });
  expect(response.status).toBe(409);
  expect(await response.json()).toMatchObject({ code: 'MESSAGE_ID_TAKEN' });
});

test('A message that is sent again during its turn is answered from the first chunk', async () => {
  const content = fake({ tokens: 30, intervalMs: 10 });
  const first = await user.send({ content, outboxItemId: 'out-3' });
  const begun = await collect(first, ({ text }) => text !== '');
  first.abort();
  const again = await user.ask({ content, outboxItemId: 'out-3' });
  expect(again.turnId).toBe(idsOf(first).turnId);
  expect(again.events.slice(0, begun.events.length)).toEqual(begun.events);
  expect(again.text.split(' ').filter(Boolean)).toHaveLength(30);
});

test('a client that goes away does not stop the turn', async () => {
  const stream = await user.send({ content: fake({ tokens: 20, intervalMs: 20 }, 'left alone') });
  await collect(stream, ({ text }) => text !== '');
  stream.abort();
  const turn = await user.ended(idsOf(stream).turnId);
  expect(turn).toMatchObject({ status: 'completed', finishReason: 'stop' });
  expect((await user.answerOf(turn))?.split(' ').filter(Boolean)).toHaveLength(20);
  const [request] = requestsWith(product.provider, 'left alone');
  expect(request?.closedByClient).toBe(false);
});

test('A client that leaves before the first token can still read its turn', async () => {
  const content = fake({ headersDelayMs: 300 }, 'hasty');
  const abort = new AbortController();
  const sent = fetch(`${product.url}/chat/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ content, outboxItemId: 'out-4' }),
    signal: abort.signal,
  });
  await sent;
  abort.abort();
  const later = await openStream(`${product.url}/chat/stream`, {
    token: user.token,
    body: { content, outboxItemId: 'out-4' },
  });
  expect((await collect(later)).text).toBe('Hello from the fake provider.');
  expect(requestsWith(product.provider, 'hasty')).toHaveLength(1);
});

describe('regenerate', () => {
  const message = (id: string, text: string) => ({ id, role: 'user', parts: [{ type: 'text', text }] });

  test('Regenerating the last message replaces its answer', async () => {
    const id = 'chat-again';
    const first = await user.ask({ id, messages: [message('q', 'Tell me')] });
    const again = await user.ask({ id, messages: [message('q', 'Tell me')], trigger: 'regenerate-message' });
    expect(again.turnId).not.toBe(first.turnId);
    const turn = await user.turn(again.turnId);
    const kept = await user.messages(first.threadId);
    expect(kept.map((kind) => kind.id)).toEqual(['q', turn.assistantMessageId]);
    expect(requestsWith(product.provider, 'Tell me')).toHaveLength(2);
  });

  test('Regenerating an earlier message removes what came after it', async () => {
    const id = 'chat-not-last';
    const { threadId } = await user.ask({ id, messages: [message('q1', 'One')] });
    await user.ask({ id, messages: [message('q2', 'Two')] });
    const again = await user.ask({ id, messages: [message('q1', 'One')], trigger: 'regenerate-message' });
    const turn = await user.turn(again.turnId);
    expect((await user.messages(threadId)).map((kept) => kept.id)).toEqual(['q1', turn.assistantMessageId]);
  });

  test('404 for regenerating a message that the thread does not have', async () => {
    const id = 'chat-none-such';
    await user.ask({ id, messages: [message('q1', 'One')] });
    const body = { id, messages: [message('q9', 'One')], trigger: 'regenerate-message' };
    expect((await user.fetch('/chat/stream', { method: 'POST', body })).status).toBe(404);
  });

  test('Editing a message during its answer stops the running turn, and only the new answer is kept', async () => {
    const id = 'chat-impatient';
    const slow = fake({ tokens: 200, intervalMs: 50 }, 'impatient');
    const first = await user.send({ id, messages: [message('q1', slow)] });
    await collect(first, ({ text }) => text.includes('w2'));
    const { turnId, threadId } = idsOf(first);
    const quick = message('q1', 'In other words');
    const edited = await user.ask({ id, messages: [quick], trigger: 'submit-message', messageId: 'q1' });
    expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
    expect(edited.text).toBe('Hello from the fake provider.');
    const kept = await user.messages(threadId);
    expect(kept.map(({ role, parts }) => [role, textOf(parts)])).toEqual([
      ['user', 'In other words'],
      ['assistant', 'Hello from the fake provider.'],
    ]);
  });
});

test('an edited message is answered in its new words; the model sees nothing of the old ones', async () => {
  const id = 'chat-edit';
  const message = (name: string, text: string) => ({ id: name, role: 'user', parts: [{ type: 'text', text }] });
  await user.ask({ id, messages: [message('e1', 'First')] });
  await user.ask({ id, messages: [message('e2', 'Old words')] });
  const { threadId } = await user.ask({ id, messages: [message('e3', 'Third')] });
  const body = { id, messages: [message('e1', 'First'), message('e2', 'New words')] };
  await user.ask({ ...body, trigger: 'submit-message', messageId: 'e2' });
  const [request] = requestsWith(product.provider, 'New words');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(JSON.stringify(request?.body)).not.toMatch(/Old words|Third/);
  const kept = await user.messages(threadId);
  expect(kept.map(({ id: name, role }) => (role === 'user' ? name : role))).toEqual([
    'e1',
    'assistant',
    'e2',
    'assistant',
  ]);
});
