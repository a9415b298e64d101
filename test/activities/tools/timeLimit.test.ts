import { type ChatUser, textOf } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { waitFor } from '../../support/waitFor.ts';

const limitSeconds = 3;
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({
    ATRIUM_MAX_SECONDS_PER_TURN: String(limitSeconds),
    // Gives each step its own history, because the limit covers the whole turn.
    ATRIUM_MAX_HISTORY_EVENTS: '10',
  });
  user = await product.user();
});
afterAll(() => product.close());

const ending = [
  { type: 'data-limit', data: { limit: 'time', code: 'TIME_LIMIT' } },
  { type: 'error', code: 'TIME_LIMIT', errorText: expect.stringContaining('its time limit') },
];

test('A turn that works for too long ends with TIME_LIMIT, and its text is kept', async () => {
  const endless = fake({ tokens: 10_000, intervalMs: 20 });
  const slow = Array.from({ length: 100 }, (_, at) => `/tokens 20 20\n/tool drive_list {"limit":${at + 1}}`);
  const [talking, working] = await Promise.all([
    user.ask({ content: endless, modelId: 'fake-1' }),
    user.ask({ content: slow.join('\n'), modelId: 'demo' }),
  ]);
  for (const { turnId, threadId, chunks, text } of [talking, working]) {
    expect(chunks.slice(-2)).toMatchObject(ending);
    expect(await user.turn(turnId)).toMatchObject({ status: 'failed', error: { code: 'TIME_LIMIT' } });
    const [, message] = await user.messages(threadId);
    expect(text.length).toBeGreaterThan(50);
    expect(textOf(message?.parts ?? [])).toBe(text);
  }
  // Each step is much shorter than the limit, so the limit is the turn's.
  expect(toolOutputs(working.chunks).length).toBeGreaterThan(0);
});

test('The time in which a turn waits does not count', async () => {
  const { turnId } = await user.ask({ content: toolLines([['ask_user', { question: '?' }]]), modelId: 'demo' });
  const { pendingToolCalls } = await user.turn(turnId);
  const until = Date.now() + (limitSeconds + 1) * 1_000;
  await waitFor('more than the time limit to pass', () => Date.now() > until);
  expect(await user.turn(turnId)).toMatchObject({ status: 'waiting' });
  await user.ask({ toolResults: [{ toolUseId: pendingToolCalls[0]?.toolCallId, content: 'late' }] });
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
});
