import { newId } from '../../../base/ids.ts';
import { chatModels } from '../../../models/chat/models.ts';
import { contentOfPicture } from '../../../models/chat/resultPictures.ts';
import { idempotencyModels } from '../../../models/operations/idempotency.ts';
import type { ChatUser, MessageBody, ThreadBody } from '../../builders/chat.ts';
import { putFile } from '../../builders/files.ts';
import { buildProduct, rolesOf, type TestProduct } from '../../builders/product.ts';
import { toolLines } from '../../builders/tools.ts';
import { inFull } from '../../support/inFull.ts';

const full = inFull('chat');

// Copies of a thread: forks, which go on from a message, and exports.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

const fork = (threadId: string, body: unknown = {}, headers = {}, by = user) =>
  by.fetch(`/api/threads/${threadId}/fork`, { method: 'POST', body, headers });
async function forked(threadId: string, body?: unknown): Promise<ThreadBody> {
  const response = await fork(threadId, body);
  expect(response.status).toBe(201);
  return (await response.json()) as ThreadBody;
}
const exported = async (threadId: string, format = 'json') =>
  (await user.fetch(`/api/threads/${threadId}/export?format=${format}`)).text();

async function threadOf(...contents: string[]): Promise<string> {
  let threadId: string | undefined;
  for (const content of contents) ({ threadId } = await user.ask({ content, threadId }));
  return threadId ?? '';
}

/** A message without the fields that name its turn. */
const asSaid = ({ id, role, parts }: MessageBody) => ({ id, role, parts });

describe('a fork', () => {
  test('A fork has the messages up to the named one, and goes on from there', async () => {
    const threadId = await threadOf('First question', 'Second question', 'Third question');
    const messages = await user.messages(threadId);
    const copy = await forked(threadId, { messageId: messages[3]?.id, title: 'Another way' });
    expect(copy).toMatchObject({ spaceId: user.spaceId, title: 'Another way', activeTurnId: null });
    expect((await user.messages(copy.id)).map(asSaid)).toEqual(messages.slice(0, 4).map(asSaid));

    await user.ask({ content: 'Asked in the copy', threadId: copy.id });
    const asked = product.provider.requests.at(-1);
    expect(rolesOf(asked).filter((role) => role !== 'system')).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ]);
    expect(JSON.stringify(asked?.body)).not.toContain('Third question');
    expect(await user.messages(threadId)).toEqual(messages);
  });

  test('A fork has turns of its own, without usage', async () => {
    const threadId = await threadOf('One', 'Two');
    const copy = await forked(threadId);
    const turns = async (id: string) =>
      (
        await user.get<{ data: { id: string; status: string; usage: { inputTokens: number } }[] }>(
          `/api/threads/${id}/turns`,
        )
      ).data;
    const [before, after] = [await turns(threadId), await turns(copy.id)];
    expect(after.map(({ status, usage }) => [status, usage.inputTokens])).toEqual([
      ['completed', 0],
      ['completed', 0],
    ]);
    expect(after.map(({ id }) => id)).not.toEqual(before.map(({ id }) => id));
    const messages = await user.get<{
      data: { turnId: string; metadata: { turnId: string; threadId: string } | null }[];
    }>(`/api/threads/${copy.id}/messages`);
    for (const { turnId, metadata } of messages.data) {
      expect(after.map(({ id }) => id)).toContain(turnId);
      if (metadata !== null) expect(metadata).toMatchObject({ turnId, threadId: copy.id });
    }
    const replay = await user.open(`/chat/turns/${after[0]?.id}/stream`);
    expect(await replay.response.text()).toContain('Hello from the fake provider.');
  });

  test('A fork outlives its original, with long answers, and reads the original’s files until then', async () => {
    const { threadId, turnId } = await user.ask({ content: 'Draw' });
    const { database } = product.environment;
    await user.ended(turnId);
    const { containerId } = await putFile(product, user, '/plan.txt', 'the plan', threadId);
    await user.ask({ content: 'Read it', threadId, files: [{ path: '/plan.txt', containerId }] });
    await database.pool.query('UPDATE messages SET pieces = 1 WHERE turn_id = ? AND position = 1', [turnId]);
    const part = { type: 'text', text: 'in a piece', state: 'done' };
    await database.pool.query('INSERT INTO answer_pieces (turn_id, piece, parts) VALUES (?, 0, ?)', [
      turnId,
      `${JSON.stringify(part)}\n`,
    ]);
    const copy = await forked(threadId);
    await user.ask({ content: 'And now?', threadId: copy.id });
    expect(JSON.stringify(product.provider.requests.at(-1)?.body)).toContain('the plan');
    expect((await user.fetch(`/api/threads/${threadId}`, { method: 'DELETE' })).status).toBe(204);
    expect((await user.messages(copy.id))[1]?.parts).toEqual([part]);
  });

  test('Repeated requests with the same idempotency key make one fork', async () => {
    const threadId = await threadOf('Once');
    const key = { 'idempotency-key': 'fork' };
    const answers = await Promise.all([1, 2, 3].map(() => fork(threadId, {}, key)));
    expect(answers.map(({ status }) => status).filter((status) => ![201, 409].includes(status))).toEqual([]);
    const again = (await (await fork(threadId, {}, key)).json()) as ThreadBody;
    const { Thread } = chatModels(product.environment.database);
    expect((await Thread.findAll({ where: { forkedFrom: threadId } })).map(({ id }) => id)).toEqual([again.id]);
    expect((await fork(threadId, { title: 'Else' }, key)).status).toBe(422);
    // As if the process had died before it could answer.
    const { Idempotency } = idempotencyModels(product.environment.database);
    const lost = { responseStatus: null, responseBody: null, claimedAt: new Date(Date.now() - 61_000) };
    await Idempotency.update(lost, { where: { objectId: again.id } });
    expect(await (await fork(threadId, {}, key)).json()).toEqual(again);
    expect(await Thread.count({ where: { forkedFrom: threadId } })).toBe(1);
  });

  test('A fork leaves out replaced messages and a turn that is still being answered', async () => {
    const threadId = await threadOf('Kept');
    const { turnId } = await user.ask({
      content: toolLines([['ask_user', { question: 'Which?' }]]),
      modelId: 'demo',
      threadId,
    });
    const messages = await user.messages(threadId);
    const waiting = messages.at(-1)?.id;
    const refused = await fork(threadId, { messageId: waiting });
    expect([refused.status, await refused.json()]).toMatchObject([409, { code: 'TURN_NOT_ENDED' }]);
    expect(await user.messages((await forked(threadId)).id)).toHaveLength(2);
    await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
    await user.ended(turnId);
    const [first] = messages;
    const edited = { id: first?.id, role: 'user', parts: [{ type: 'text', text: 'Edited' }] };
    await user.ask({ threadId, trigger: 'submit-message', messageId: first?.id, messages: [edited] });
    const now = await user.messages(threadId);
    expect(now).toHaveLength(2);
    expect((await user.messages((await forked(threadId)).id)).map(({ id }) => id)).toEqual(now.map(({ id }) => id));
  });

  test('Only the owner can fork and export a thread, and only from an existing message', async () => {
    const threadId = await threadOf('Mine');
    const colleague = await product.user();
    await product.identity.members.add(user.spaceId, colleague.email, 'owner');
    expect((await fork(threadId, {}, {}, colleague)).status).toBe(403);
    expect((await fork(threadId, {}, {}, await product.user())).status).toBe(404);
    expect((await fork(threadId, { messageId: 'none' })).status).toBe(404);
    expect((await fork(threadId, { messageId: 5 })).status).toBe(400);
    expect((await colleague.fetch(`/api/threads/${threadId}/export`)).status).toBe(403);
    expect((await user.fetch(`/api/threads/${threadId}/export?format=pdf`)).status).toBe(400);
  });
});

test('Forks of forks find the pictures that tools made', async () => {
  const threadId = await threadOf('Draw');
  const { environment } = product;
  const copy = await forked((await forked(threadId)).id);
  const { Turn } = chatModels(environment.database);
  const turn = await Turn.findOne({ where: { threadId }, rejectOnEmpty: true });
  const call = newId('toolCall');
  await putFile(product, user, `/tool-results/${call}.png`, 'a picture', threadId);
  const of = { spaceId: user.spaceId, threadId: copy.id };
  expect(await contentOfPicture(environment.database, of, call, 'image/png')).toMatchObject({ size: 9 });
  expect(await contentOfPicture(environment.database, turn, newId('toolCall'), 'image/png')).toBeUndefined();
});

describe('an export', () => {
  test('The JSON export has the messages as they are listed', async () => {
    const threadId = await threadOf('One', 'Two');
    const { data } = await user.get<{ data: MessageBody[] }>(`/api/threads/${threadId}/messages`);
    const thread = await user.get(`/api/threads/${threadId}`);
    expect(JSON.parse(await exported(threadId))).toEqual({ thread, messages: data });
    const empty = (await (
      await user.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body: {} })
    ).json()) as ThreadBody;
    expect(JSON.parse(await exported(empty.id))).toEqual({ thread: empty, messages: [] });
  });

  test('The Markdown export has what was said, and no text ends its block of code', async () => {
    const { threadId } = await user.ask({
      content: `What is this?\n${toolLines([['drive_list', { path: '/```' }]])}`,
      modelId: 'demo',
    });
    await user.fetch(`/api/threads/${threadId}`, { method: 'PATCH', body: { title: 'Title' } });
    const text = await exported(threadId, 'markdown');
    expect(text).toMatch(/^# Title\n\n## Question, \d{4}-.*\n\nWhat is this\?/);
    expect(text).toContain('Tool ` drive_list `\n\n````json');
    const response = await user.fetch(`/api/threads/${threadId}/export?format=markdown`);
    expect(response.headers.get('content-type')).toContain('text/markdown');
    expect(response.headers.get('content-disposition')).toBe(`attachment; filename=${threadId}.md`);
    await response.text();
  });
});

full.test('a thread of 5,000 messages is copied and exported whole', async () => {
  const threadId = await threadOf('Begin');
  const { pool } = product.environment.database;
  const turns = Array.from({ length: 2_499 }, (_, index) => index + 2);
  const at = new Date();
  const idOf = (turn: number) => `trn_${threadId.slice(4, 20)}${String(turn).padStart(10, '0')}`;
  await pool.query(
    `INSERT INTO turns (id, thread_id, space_id, user_id, ordinal, status, terminal, user_message_id,
      assistant_message_id, mode, model_id, notification_priority, created_at, ended_at) VALUES ?`,
    [
      turns.map((turn) => [
        ...[idOf(turn), threadId, user.spaceId, user.id, turn, 'completed', 1, `u${turn}`, `a${turn}`],
        ...['ask', 'demo', 'default', at, at],
      ]),
    ],
  );
  const parts = JSON.stringify([{ type: 'text', text: 'word '.repeat(200), state: 'done' }]);
  const row = (turn: number, position: number) => [
    ...[threadId, turn, position, `${position === 0 ? 'u' : 'a'}${turn}`, idOf(turn)],
    ...[position === 0 ? 'user' : 'assistant', parts, at],
  ];
  await pool.query(
    'INSERT INTO messages (thread_id, turn_ordinal, position, id, turn_id, role, parts, created_at) VALUES ?',
    [turns.flatMap((turn) => [row(turn, 0), row(turn, 1)])],
  );
  await pool.query('UPDATE threads SET next_turn_ordinal = 2501 WHERE id = ?', [threadId]);

  const all = JSON.parse(await exported(threadId)) as { messages: MessageBody[] };
  expect(all.messages).toHaveLength(5_000);
  const copy = await forked(threadId);
  const copied = JSON.parse(await exported(copy.id)) as { messages: MessageBody[] };
  expect(copied.messages.map(asSaid)).toEqual(all.messages.map(asSaid));
  expect((await exported(copy.id, 'markdown')).match(/^## /gm)).toHaveLength(5_000);
});
