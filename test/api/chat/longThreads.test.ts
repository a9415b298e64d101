import type { RowDataPacket } from 'mysql2';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import type { RecordedRequest } from '../../fakes/openaiServer.ts';
import type { FakeRequest, FakeScript } from '../../fakes/script.ts';
import { inFull } from '../../support/inFull.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('chat');

/** Model calls beside the answer: summaries, which keep long threads inside the window, and titles. */
let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_TITLE_MODEL: 'auto' }, respond);
});
afterAll(() => product.close());

/** What the provider does with the next summaries of a thread, by a word that the thread contains. */
const summaries = new Map<string, FakeScript[]>();
let summaryNumber = 0;

function respond({ body }: FakeRequest): FakeScript | undefined {
  const said = JSON.stringify(body.messages);
  if (isTitle(body))
    return { tokens: ['"A Title', ' of its own."\n', 'and more'], usage: { inputTokens: 5, outputTokens: 5 } };
  if (!isSummary(body)) return undefined;
  const script = [...summaries].find(([word]) => said.includes(word))?.[1].shift();
  return script ?? { tokens: [`SUMMARY-${++summaryNumber}`], usage: { inputTokens: 1_000, outputTokens: 7 } };
}

const systemOf = (body: FakeRequest['body']) => (body.messages as { content: string }[])[0]?.content ?? '';
const isSummary = (body: FakeRequest['body']) => systemOf(body).includes('Summarise it');
const isTitle = (body: FakeRequest['body']) => systemOf(body).includes('with a title');
const requestsOf = (word: string, kind: (body: FakeRequest['body']) => boolean): RecordedRequest[] =>
  product.provider.requests.filter(({ body }) => kind(body) && JSON.stringify(body.messages).includes(word));

/** A user in whose space a prompt has at most 2,000 tokens. */
async function inSmallWindow(): Promise<ChatUser> {
  const user = await product.user();
  const body = { limits: { maxContextTokens: 2_000 } };
  await user.fetch(`/api/spaces/${user.spaceId}/chat-settings`, { method: 'PUT', body });
  return user;
}

/** About 500 tokens that name the thread and the message. */
const long = (word: string, number: number) => `${word} ${number}. ${'lorem ipsum '.repeat(165)}`;

async function fill(user: ChatUser, word: string, count: number): Promise<string> {
  let threadId: string | undefined;
  for (let number = 1; number <= count; number++) {
    threadId = (await user.ask({ content: long(word, number), threadId })).threadId;
  }
  return threadId ?? '';
}

async function summariesOf(threadId: string): Promise<{ upTo: number; summary: string }[]> {
  const [rows] = await product.environment.database.pool.query<RowDataPacket[]>(
    'SELECT up_to_ordinal AS upTo, summary FROM thread_summaries WHERE thread_id = ? ORDER BY up_to_ordinal',
    [threadId],
  );
  return rows as { upTo: number; summary: string }[];
}

const isAnswer = (body: FakeRequest['body']) => !isSummary(body) && !isTitle(body);
const promptOf = (word: string) => JSON.stringify(requestsOf(word, isAnswer).at(-1)?.body.messages);

describe('a thread that outgrows the window', () => {
  test('A long thread goes on with a summary and its last turns, and every message can still be read', async () => {
    const user = await inSmallWindow();
    const threadId = await fill(user, 'Oak', 8);
    const stored = await summariesOf(threadId);
    expect(stored.length).toBeGreaterThan(1);
    for (const { body } of requestsOf('Oak', isAnswer))
      expect(JSON.stringify(body.messages).length / 4).toBeLessThan(2_200);
    const last = promptOf('Oak 8.');
    expect(last).toContain(stored.at(-1)?.summary);
    expect(last).toContain('Oak 7.');
    expect(last).not.toContain('Oak 1.');
    // Each summary includes the one before it, so nothing is lost.
    const asked = requestsOf('Oak', isSummary).map(({ body }) => JSON.stringify(body.messages));
    expect(asked[0]).toContain('Oak 1.');
    expect(asked[1]).toContain(stored[0]?.summary);
    expect((await user.messages(threadId)).filter(({ role }) => role === 'user')).toHaveLength(8);
  });

  test('A summary counts once to the usage of the turn that needed it', async () => {
    const user = await inSmallWindow();
    const threadId = await fill(user, 'Beech', 4);
    const { data } = await user.get<{ data: { usage: { inputTokens: number } }[] }>(`/api/threads/${threadId}/turns`);
    const calls = requestsOf('Beech', isSummary).length;
    const total = data.reduce((sum, { usage }) => sum + usage.inputTokens, 0);
    expect([calls > 0, total]).toEqual([true, 4 * 10 + calls * 1_000]);
  });

  test('A failed summary is tried again, and never stored in part', async () => {
    const user = await inSmallWindow();
    summaries.set('Cedar', [{ status: 429 }, { tokens: ['Half a'], fail: { how: 'cut' } }]);
    const threadId = await fill(user, 'Cedar', 4);
    expect((await summariesOf(threadId)).map(({ summary }) => summary)).toEqual([
      expect.stringMatching(/^SUMMARY-\d+$/),
    ]);
    const turns = await user.get<{ data: { status: string }[] }>(`/api/threads/${threadId}/turns`);
    expect(turns.data.map(({ status }) => status)).toEqual(Array(4).fill('completed'));
  });

  test('A summary that cannot be made fails the turn with the provider’s code, and the thread goes on', async () => {
    const user = await inSmallWindow();
    summaries.set('Elm', [{ status: 400 }]);
    const threadId = await fill(user, 'Elm', 2);
    const statuses = [];
    for (const number of [3, 4, 5]) {
      const { turnId } = await user.ask({ content: long('Elm', number), threadId });
      const { status, error } = await user.turn(turnId);
      statuses.push(error?.code ?? status);
    }
    expect(statuses).toContain('PROVIDER_REFUSED');
    expect(statuses.at(-1)).toBe('completed');
  });

  test('Stopping a turn also stops its summary', async () => {
    const user = await inSmallWindow();
    summaries.set('Fir', [{ firstTokenDelayMs: 60_000 }]);
    const threadId = await fill(user, 'Fir', 2);
    let stopped: string | undefined;
    for (const number of [3, 4]) {
      const { turnId } = idsOf(await user.send({ content: long('Fir', number), threadId }));
      const began = await waitFor('the end or the summary', async () => {
        if ((await user.turn(turnId)).endedAt !== null) return 'ended';
        return requestsOf('Fir', isSummary).length > 0 && 'summary';
      });
      if (began !== 'summary') continue;
      await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
      stopped = (await user.ended(turnId)).status;
      break;
    }
    expect(stopped).toBe('stopped');
    expect(await summariesOf(threadId)).toEqual([]);
  });

  test('Editing a message that is in a summary removes the summary', async () => {
    const user = await inSmallWindow();
    const id = 'chat-maple';
    const message = (number: number, text = long('Maple', number)) => ({
      id: `m${number}`,
      role: 'user',
      parts: [{ type: 'text', text }],
    });
    let threadId = '';
    for (let number = 1; number <= 5; number++)
      threadId = (await user.ask({ id, messages: [message(number)] })).threadId;
    expect((await summariesOf(threadId)).length).toBeGreaterThan(0);
    await user.ask({ id, messages: [message(1, 'Birch instead')], trigger: 'submit-message', messageId: 'm1' });
    expect(await summariesOf(threadId)).toEqual([]);
    expect(promptOf('Birch instead')).not.toMatch(/Maple|SUMMARY/);
  });

  test('A message that is too long by itself is refused with its reason, and the thread goes on', async () => {
    const user = await inSmallWindow();
    const { turnId, threadId, chunks } = await user.ask({ content: 'word '.repeat(5_000) });
    expect(chunks.at(-1)).toMatchObject({ type: 'error', code: 'CONTEXT_TOO_LONG' });
    expect((await user.turn(turnId)).status).toBe('failed');
    const next = await user.ask({ content: 'Shorter', threadId });
    expect(next.chunks.at(-1)).toMatchObject({ type: 'finish' });
  });

  test('a provider that finds a prompt too long gets a smaller one', async () => {
    const user = await product.user();
    let threadId: string | undefined;
    for (let number = 1; number <= 3; number++) {
      threadId = (await user.ask({ content: `Hazel ${number}. ${'x '.repeat(90_000)}`, threadId })).threadId;
    }
    const tooLong = {
      status: 400,
      body: JSON.stringify({
        error: { message: 'This model’s maximum context length is 1', code: 'context_length_exceeded' },
      }),
    };
    const answer = await user.ask({ content: fake(tooLong, `Hazel 4. ${'x '.repeat(90_000)}`), threadId });
    // The fake refuses every prompt. This test checks that the attempts become smaller, and that they end.
    expect(answer.chunks.at(-1)).toMatchObject({ type: 'error', code: 'CONTEXT_TOO_LONG' });
    const sizes = requestsOf('Hazel 4.', isAnswer).map(({ body }) => JSON.stringify(body.messages).length);
    expect(sizes).toHaveLength(3);
    expect(sizes).toEqual(sizes.toSorted((one, other) => other - one));
    expect(sizes.at(-1)).toBeLessThan((sizes[0] ?? 0) * 0.8);
  });
});

describe('the title of a new thread', () => {
  const titleOf = async (user: ChatUser, threadId: string) =>
    (await user.get<{ title: string | null }>(`/api/threads/${threadId}`)).title;

  test('A title is made after the first answer, and counts to no turn', async () => {
    const user = await product.user();
    const { threadId, turnId } = await user.ask({ content: 'Willow' });
    expect(await waitFor('the title', () => titleOf(user, threadId))).toBe('A Title of its own');
    expect((await user.turn(turnId)).usage.inputTokens).toBe(10);
    await user.ask({ content: 'Willow again', threadId });
    expect(requestsOf('Willow', isTitle)).toHaveLength(1);
  });

  test('A generated title never overwrites one that the user has set', async () => {
    const user = await product.user();
    const stream = await user.send({ content: fake({ tokens: 3, intervalMs: 100 }, 'Yew') });
    const { threadId, turnId } = idsOf(stream);
    await user.fetch(`/api/threads/${threadId}`, { method: 'PATCH', body: { title: 'Mine' } });
    await collect(stream);
    await user.ask({ content: 'Yew again', threadId });
    expect((await user.turn(turnId)).status).toBe('completed');
    expect(await titleOf(user, threadId)).toBe('Mine');
    expect(requestsOf('Yew', isTitle)).toEqual([]);
  });

  test('With the demo model, the title is the first words, without a model call', async () => {
    const user = await product.user();
    const { threadId } = await user.ask({ content: '  Rowan   trees in\nwinter', modelId: 'demo' });
    expect(await waitFor('the title', () => titleOf(user, threadId))).toBe('Rowan trees in winter');
    expect(requestsOf('Rowan', isTitle)).toEqual([]);
  });
});

full.test('After a kill during a summary, the turn is answered, and the summary is there once', async () => {
  const user = await inSmallWindow();
  const word = 'Linden';
  summaries.set(word, [{ firstTokenDelayMs: 60_000 }]);
  const threadId = await fill(user, word, 2);
  for (let number = 3; requestsOf(word, isSummary).length === 0; number++) {
    const { turnId } = idsOf(await user.send({ content: long(word, number), threadId }));
    const began = await waitFor('the end or the summary', async () => {
      if (requestsOf(word, isSummary).length > 0) return 'summary';
      return (await user.turn(turnId)).endedAt !== null && 'ended';
    });
    if (began !== 'summary') continue;
    await product.process.kill('SIGKILL');
    await product.restart();
    const turn = await waitFor(
      'the end',
      async () => {
        const found = await user.turn(turnId);
        return found.endedAt !== null && found;
      },
      { timeoutMs: 60_000 },
    );
    expect(turn.status).toBe('completed');
  }
  expect(await summariesOf(threadId)).toHaveLength(1);
});
