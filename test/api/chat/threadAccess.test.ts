import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines } from '../../builders/tools.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Every way to a thread makes the same check: the caller owns the thread and is still a member of its space. */
let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct();
});
afterAll(() => product.close());

interface Visited {
  member: ChatUser;
  host: ChatUser;
  threadId: string;
  turnId: string;
  toolCallId: string;
}

const alias = 'made-by-the-client';
const question = { messages: [{ role: 'user', parts: [{ type: 'text', text: 'What was it?' }] }] };

/** A member of another user's space, with a turn there that waits for an answer. */
async function waitingTurn(): Promise<Visited> {
  const [member, host] = [await product.user(), await product.user()];
  await product.identity.members.add(host.spaceId, member.email, 'editor');
  const content = toolLines([['ask_user', { question: 'Which?' }]]);
  const body = { id: alias, content, modelId: 'demo', spaceId: host.spaceId, outboxItemId: 'asked' };
  const { threadId, turnId } = await member.ask(body);
  const { pendingToolCalls } = await member.turn(turnId);
  return { member, host, threadId, turnId, toolCallId: pendingToolCalls[0]?.toolCallId ?? '' };
}

type Way = (visited: Visited) => Promise<Response>;

const post = (member: ChatUser, body: unknown) => member.fetch('/chat/stream', { method: 'POST', body });

const ways: Record<string, Way> = {
  'the thread’s stream': ({ member, threadId }) => member.fetch(`/chat/stream/${threadId}/stream`),
  'the alias’s stream': ({ member, host }) => member.fetch(`/chat/stream/${alias}/stream?spaceId=${host.spaceId}`),
  'an alias that was never used': ({ member, host }) =>
    member.fetch(`/chat/stream/another/stream?spaceId=${host.spaceId}`),
  'a message by the thread': ({ member, threadId }) => post(member, { content: 'x', threadId }),
  'a message by the alias': ({ member, host }) => post(member, { id: alias, ...question, spaceId: host.spaceId }),
  'the answer again': ({ member, threadId }) =>
    post(member, { id: threadId, ...question, trigger: 'regenerate-message' }),
  'an outbox item': ({ member }) => post(member, { content: 'x', outboxItemId: 'asked' }),
  'a tool’s result': ({ member, toolCallId }) =>
    post(member, { toolResults: [{ toolUseId: toolCallId, content: 'this' }] }),
  'a tool’s result, by the alias': ({ member, host, toolCallId }) =>
    post(member, {
      id: alias,
      spaceId: host.spaceId,
      messages: [
        {
          role: 'assistant',
          parts: [{ type: 'tool-ask_user', toolCallId, state: 'output-available', output: 'this' }],
        },
      ],
    }),
  'the turn': ({ member, turnId }) => member.fetch(`/chat/turns/${turnId}`),
  'the turn’s stream': ({ member, turnId }) => member.fetch(`/chat/turns/${turnId}/stream`),
  'the turn’s end': ({ member, turnId }) => member.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' }),
  'an approval': ({ member, turnId, toolCallId }) =>
    member.fetch(`/chat/turns/${turnId}/approvals/${toolCallId}`, { method: 'POST', body: { approved: true } }),
  'the thread': ({ member, threadId }) => member.fetch(`/api/threads/${threadId}`),
  'its messages': ({ member, threadId }) => member.fetch(`/api/threads/${threadId}/messages`),
  'its turns': ({ member, threadId }) => member.fetch(`/api/threads/${threadId}/turns`),
  'its list': ({ member, host }) => member.fetch(`/api/spaces/${host.spaceId}/threads`),
  'its files': ({ member, host, threadId }) =>
    member.fetch(`/api/spaces/${host.spaceId}/thread-files/url?threadId=${threadId}&path=/a.txt`),
  'an attachment from it': ({ member, threadId }) =>
    post(member, { content: 'x', files: [{ containerId: `thread:${threadId}`, path: '/a.txt' }] }),
};

/** The status. An open stream is closed. */
async function statusOf(response: Response): Promise<number> {
  await response.body?.cancel();
  return response.status;
}

test('404 for a removed member on every way to a thread of theirs', async () => {
  const visited = await waitingTurn();
  await product.identity.members.remove(visited.host.spaceId, visited.member.id);
  // A process remembers a membership for a second.
  await waitFor('the membership to be forgotten', async () => {
    const { status } = await visited.member.fetch(`/api/threads/${visited.threadId}`);
    return status === 404;
  });
  const answers: Record<string, number> = {};
  for (const [name, go] of Object.entries(ways)) answers[name] = await statusOf(await go(visited));
  expect(answers).toEqual(Object.fromEntries(Object.keys(ways).map((name) => [name, 404])));
});

test('404 for a deleted thread, also through its turns, tool calls and outbox items', async () => {
  const visited = await waitingTurn();
  const { member, host, threadId } = visited;
  expect((await member.fetch(`/api/threads/${threadId}`, { method: 'DELETE' })).status).toBe(204);
  const answers: Record<string, number> = {};
  const outboxItem = { content: 'x', outboxItemId: 'asked', spaceId: host.spaceId };
  answers['an outbox item'] = await statusOf(await post(member, outboxItem));
  for (const name of ['a tool’s result', 'the turn', 'the turn’s stream', 'an approval']) {
    answers[name] = await statusOf((await ways[name]?.(visited)) as Response);
  }
  expect(answers).toEqual({
    'an outbox item': 404,
    'a tool’s result': 404,
    'the turn': 404,
    'the turn’s stream': 404,
    'an approval': 404,
  });
});
