import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { balancesOf, buildCredits, expectBooksInOrder } from '../../builders/billing.ts';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../../builders/product.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

// What chat costs, in a running Atrium where credits are enforced.

const perThousand = (label: string, creditsPerUnit: number) => ({ label, creditsPerUnit, unit: '1K tokens' });
const capabilities = { maxOutputTokens: 1_000 };
const models = [
  {
    ...{ id: 'tokens', provider: 'compatible', capabilities },
    pricingRates: [
      ...[perThousand('Input', 1), perThousand('Cached input', 0.1), perThousand('Output', 10)],
      perThousand('Reasoning', 20),
    ],
  },
  {
    ...{ id: 'calls', provider: 'compatible', capabilities },
    pricingRates: [{ label: 'Request', creditsPerUnit: 1, unit: 'request' }],
  },
  {
    ...{ id: 'answers', provider: 'compatible', capabilities },
    pricingRates: [perThousand('Output', 10)],
  },
  {
    ...{ id: 'prompts', provider: 'compatible', capabilities },
    pricingRates: [perThousand('Input', 1)],
  },
  { id: 'free', provider: 'compatible' },
];
const modelsFile = join(temporaryFolder(), 'models.json');
writeFileSync(modelsFile, JSON.stringify({ models }));

/** A call of an unknown tool. The model gets an error and is called again. */
const toolCall = () => ({ id: `call_${randomUUID()}`, name: 'no_such_tool', arguments: '{}' });

let product: TestProduct;
beforeAll(async () => {
  const settings = {
    ATRIUM_MODELS_FILE: modelsFile,
    ATRIUM_BILLING_ENFORCED: 'true',
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
    // The messages of a user must run at the same time, so no request may wait for a slot.
    ATRIUM_REQUESTS_AT_ONCE: '200',
    ATRIUM_REQUESTS_PER_USER_AT_ONCE: '200',
  };
  product = await buildProduct(settings, ({ body }) =>
    JSON.stringify(body.messages).includes('for ever') ? { tokens: ['Look. '], toolCalls: [toolCall()] } : undefined,
  );
});
afterAll(async () => {
  await expectBooksInOrder(product.environment.database);
  await product.close();
});

const micro = 1_000_000;
const balances = (user: ChatUser) => balancesOf(product.environment.database, user.spaceId);
const buyer = async (name: string, credits: number) => {
  const user = await product.user(name);
  if (credits > 0) await buildCredits(product.environment.database, credits, user.spaceId);
  return user;
};
const settled = async (user: ChatUser) => {
  await waitFor('nothing to be reserved', async () => (await balances(user)).reserved === undefined);
  return balances(user);
};

test('The list of models shows the price of each model', async () => {
  const user = await product.user();
  const { models: listed } = await user.get<{ models: { id: string; pricingRates: unknown[] }[] }>('/api/chat/models');
  expect(listed.find(({ id }) => id === 'tokens')?.pricingRates[1]).toEqual({
    ...{ label: 'Cached input', credits: '0.1', creditsPerUnit: 0.1, unit: '1K tokens' },
  });
});

test('A call is billed by the provider’s token counts, at the rate of each kind of token', async () => {
  const user = await buyer('exact', 100);
  const usage = { inputTokens: 1_000, cachedInputTokens: 400, outputTokens: 300, reasoningTokens: 100 };
  await user.ask({ content: fake({ usage }, 'exact'), modelId: 'tokens' });
  // 600 × 0.001 + 400 × 0.0001 + 200 × 0.01 + 100 × 0.02
  const spent = 4.64 * micro;
  expect(await settled(user)).toEqual({ available: 100 * micro - spent, spent, paid: 100 * micro });
  const page = await user.get<{ data: { kind: string; turnId: string; detail: string }[] }>(
    `/api/billing/${user.spaceId}/entries`,
  );
  // Reserved when the message is accepted, raised to cover the whole prompt before the call, then settled.
  const kinds = page.data.map(({ kind }) => kind);
  expect([kinds[0], kinds.at(-2), kinds.at(-1)]).toEqual(['call', 'reserve', 'topUp']);
  expect(page.data[0]).toMatchObject({ detail: 'tokens', turnId: expect.stringMatching(/^trn_/) });
});

test('One of 50 messages sent for the last credit is answered, and 49 get 402 with a link to top up', async () => {
  const user = await buyer('last', 1);
  const streams = await Promise.all(
    Array.from({ length: 50 }, (_, n) => user.send({ content: `last ${n}`, modelId: 'calls' })),
  );
  const refused = streams.filter(({ response }) => response.status === 402);
  expect(streams.filter(({ response }) => response.status === 200)).toHaveLength(1);
  expect(refused).toHaveLength(49);
  for (const { response } of refused) {
    expect(response.headers.get('link')).toBe(`</api/billing/${user.spaceId}/top-up>; rel="payment"`);
    expect(await response.json()).toMatchObject({ status: 402, code: 'CREDITS_EXHAUSTED' });
  }
  const won = streams.find(({ response }) => response.status === 200);
  if (won !== undefined) await collect(won);
  expect(await settled(user)).toEqual({ spent: micro, paid: micro });
});

/** An answer of this many tokens, which the provider also reports as its usage. */
const answerOf = (tokens: number, text = '', intervalMs = 0) =>
  fake({ tokens, intervalMs, usage: { inputTokens: 20, outputTokens: tokens } }, text);

test('A client of the OpenAI API gets 402 as an OpenAI error', async () => {
  const user = await buyer('openai', 0);
  const body = { model: 'calls', messages: [{ role: 'user', content: 'For nothing' }] };
  const response = await user.fetch('/v1/chat/completions', { method: 'POST', body });
  expect(response.status).toBe(402);
  expect(await response.json()).toMatchObject({ error: { type: 'insufficient_quota', code: 'CREDITS_EXHAUSTED' } });
  expect(requestsWith(product.provider, 'For nothing')).toEqual([]);
});

test('40 concurrent answers run as far as the credits cover them, the others get 402, and no debt remains', async () => {
  const user = await buyer('crowd', 30);
  const streams = await Promise.all(
    Array.from({ length: 40 }, (_, n) => user.send({ content: answerOf(182, `crowd ${n}`), modelId: 'answers' })),
  );
  const accepted = streams.filter(({ response }) => response.status === 200);
  expect(streams.filter(({ response }) => response.status === 402)).toHaveLength(40 - accepted.length);
  const answers = await Promise.all(accepted.map((stream) => collect(stream)));
  const whole = answers.filter(({ chunks }) => chunks.at(-1)?.type === 'finish');
  // Thirty credits pay for sixteen answers of 1.82.
  expect(whole.length).toBeGreaterThanOrEqual(8);
  expect(whole.length).toBeLessThanOrEqual(16);
  const { spent = 0, available = 0, paid, ...rest } = await settled(user);
  expect([spent + available, paid, rest]).toEqual([30 * micro, 30 * micro, {}]);
  expect(spent).toBeGreaterThanOrEqual(whole.length * 1.82 * micro);
  // By now the hold follows the usual length of answers, so the rest of the credits need not cover the longest one.
  if (available >= 2.5 * micro) await user.ask({ content: answerOf(182), modelId: 'answers' });
});

test('The hold of a long answer grows step by step, and the answer costs what it used', async () => {
  const user = await buyer('growing', 30);
  const stream = await user.send({ content: answerOf(900, 'growing', 2), modelId: 'answers' });
  const seen = new Set<number>();
  const watching = collect(stream);
  let isOver = false;
  void watching.finally(() => {
    isOver = true;
  });
  await waitFor('the answer to end', async () => {
    seen.add((await balances(user)).reserved ?? 0);
    return isOver;
  });
  expect((await watching).chunks.at(-1)?.type).toBe('finish');
  expect(Math.max(...seen)).toBeLessThanOrEqual(10 * micro);
  expect([...seen].filter((reserved) => reserved > 0).length).toBeGreaterThan(2);
  expect(await settled(user)).toEqual({ available: 21 * micro, spent: 9 * micro, paid: 30 * micro });
});

test('An answer that runs out of credits fails with CREDITS_EXHAUSTED, and its output is kept and billed', async () => {
  const user = await buyer('dry', 12);
  const send = (n: number) => user.send({ content: answerOf(700, `dry ${n}`, 10), modelId: 'answers' });
  const streams = await Promise.all([send(1), send(2)]);
  const answers = await Promise.all(streams.map((stream) => collect(stream)));
  const turns = await Promise.all(streams.map((stream) => user.ended(idsOf(stream).turnId)));
  const failed = turns.filter(({ status }) => status === 'failed');
  expect(failed.length).toBeGreaterThan(0);
  for (const turn of failed) {
    expect(turn).toMatchObject({ error: { code: 'CREDITS_EXHAUSTED' } });
    expect(await user.answerOf(turn)).toContain('w3 ');
  }
  expect(answers.every(({ complete }) => complete)).toBe(true);
  const { spent = 0, available = 0, ...rest } = await settled(user);
  expect([spent + available, rest]).toEqual([12 * micro, { paid: 12 * micro }]);
  expect(spent).toBeGreaterThan(2 * micro);
});

test('An answer that its credits cut short fails with CREDITS_EXHAUSTED instead of looking complete', async () => {
  const user = await buyer('bounded', 1);
  const content = fake({ tokens: 50, finishReason: 'length', usage: { inputTokens: 20, outputTokens: 100 } }, 'bound');
  const { turnId } = await user.ask({ content, modelId: 'answers' });
  expect(await user.ended(turnId)).toMatchObject({ status: 'failed', error: { code: 'CREDITS_EXHAUSTED' } });
  expect(await settled(user)).toEqual({ spent: micro, paid: micro });
});

// The model's longest answer costs 10 credits by the catalogue, but the provider goes on after that.
test.each([
  ['with credits for the longest answer and a few more', 12],
  ['with fewer credits than for the longest answer', 5],
])('An answer of a provider that ignores its limit is cut at the credits, without debt: %s', async (_what, credits) => {
  const user = await buyer(`endless${credits}`, credits);
  const { turnId } = await user.ask({ content: answerOf(5_000, `endless ${credits}`), modelId: 'answers' });
  expect(await user.ended(turnId)).toMatchObject({ status: 'failed', error: { code: 'CREDITS_EXHAUSTED' } });
  const { spent = 0, available = 0, ...rest } = await settled(user);
  expect([spent + available, rest]).toEqual([credits * micro, { paid: credits * micro }]);
  expect(spent).toBeGreaterThan(credits * 0.7 * micro);
});

test('An answer that is longer than the catalogue says reserves on, as long as there are credits', async () => {
  const user = await buyer('longer', 100);
  const { turnId } = await user.ask({ content: answerOf(3_000, 'longer'), modelId: 'answers' });
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(await settled(user)).toEqual({ available: 70 * micro, spent: 30 * micro, paid: 100 * micro });
});

test('An answer of long words ends at the limit that its credits set, not before it', async () => {
  const user = await buyer('exactly', 5);
  const tokens = Array.from({ length: 490 }, () => 'sesqui ');
  const script = { tokens, usage: { inputTokens: 20, outputTokens: 490 } };
  const { turnId } = await user.ask({ content: fake(script, 'exactly'), modelId: 'answers' });
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(await settled(user)).toEqual({ available: 0.1 * micro, spent: 4.9 * micro, paid: 5 * micro });
});

test('The same message sent 100 times at once starts one turn and reserves the credits of one', async () => {
  const user = await buyer('hundred', 1);
  const body = { content: 'a hundred times', modelId: 'calls', outboxItemId: 'hundred' };
  const streams = await Promise.all(Array.from({ length: 100 }, () => user.send(body)));
  expect(new Set(streams.map(({ response }) => response.status))).toEqual(new Set([200]));
  expect(new Set(streams.map((stream) => idsOf(stream).turnId)).size).toBe(1);
  await Promise.all(streams.map((stream) => collect(stream)));
  expect(await settled(user)).toEqual({ spent: micro, paid: micro });
});

test('The credit check of a message counts the system prompt and the tools', async () => {
  const rich = await buyer('rich', 100);
  await rich.ask({ content: 'learn', modelId: 'prompts' });
  const poor = await buyer('poor', 0.05);
  const { response } = await poor.send({ content: 'hi', modelId: 'prompts' });
  expect([response.status, await response.json()]).toEqual([
    402,
    expect.objectContaining({ code: 'CREDITS_EXHAUSTED' }),
  ]);
  expect(await balances(poor)).toEqual({ available: 0.05 * micro, paid: 0.05 * micro });
});

test('A turn whose credits run out between calls fails with CREDITS_EXHAUSTED and keeps its output', async () => {
  const user = await buyer('midturn', 2);
  const answer = await user.ask({ content: 'call tools for ever', modelId: 'calls' });
  const turn = await user.ended(answer.turnId);
  expect(turn).toMatchObject({ status: 'failed', error: { code: 'CREDITS_EXHAUSTED' } });
  expect(answer.chunks.at(-1)).toMatchObject({ type: 'error' });
  expect(answer.complete).toBe(true);
  expect(await user.answerOf(turn)).toContain('Look.');
  expect(await settled(user)).toEqual({ spent: 2 * micro, paid: 2 * micro });
});

test('Few credits limit the length of the answer', async () => {
  const user = await buyer('short', 5);
  await user.ask({ content: 'bounded', modelId: 'tokens' });
  const [request] = requestsWith(product.provider, 'bounded');
  const limit = Number(request?.body.max_tokens ?? request?.body.max_completion_tokens);
  // At 0.02 credits for the dearest token, five credits pay for 250 of them, and for fewer after the prompt.
  expect(limit).toBeGreaterThan(10);
  expect(limit).toBeLessThan(250);
});

test('A call that fails before it answers costs nothing', async () => {
  const user = await buyer('failing', 10);
  const answer = await user.ask({ content: fake({ status: 400, body: '{}' }, 'failing'), modelId: 'calls' });
  expect(await user.ended(answer.turnId)).toMatchObject({ status: 'failed' });
  expect(await settled(user)).toEqual({ available: 10 * micro, paid: 10 * micro });
});

test('A stopped call is billed for the text that it wrote, and is free if it wrote none', async () => {
  const user = await buyer('stopping', 100);
  const stop = (turnId: string) => user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  const silent = await user.send({ content: fake({ firstTokenDelayMs: 20_000 }, 'silent'), modelId: 'tokens' });
  await waitFor('the provider to be asked', () => requestsWith(product.provider, 'silent')[0]);
  await stop(idsOf(silent).turnId);
  await collect(silent);
  expect(await settled(user)).toEqual({ available: 100 * micro, paid: 100 * micro });

  const stream = await user.send({ content: fake({ tokens: 500, intervalMs: 10 }, 'chatty'), modelId: 'tokens' });
  const begun = await collect(stream, ({ text }) => text.length > 200);
  await stop(idsOf(stream).turnId);
  await collect(stream);
  const { spent = 0 } = await settled(user);
  // Four characters a token at 0.01 credits a token, plus the prompt.
  expect(spent).toBeGreaterThanOrEqual((begun.text.length / 4) * 10_000);
  expect(spent).toBeLessThan(6 * micro);
});

test('A model without a price needs no credits', async () => {
  const user = await buyer('free', 0);
  await user.ask({ content: 'hello', modelId: 'free' });
  expect(await balances(user)).toEqual({});
});

test('A spending cap answers 402 before the stream, and a changed cap applies at once', async () => {
  const user = await buyer('capped', 100);
  const setCaps = (caps: Record<string, number | null>) =>
    user.fetch(`/api/billing/${user.spaceId}/caps`, {
      method: 'PUT',
      body: { perTurn: null, perDay: null, perMemberPerDay: null, ...caps },
    });
  await setCaps({ perDay: 1 });
  await user.ask({ content: 'the first', modelId: 'calls' });
  const refused = await user.send({ content: 'the second', modelId: 'calls' });
  expect(refused.response.status).toBe(402);
  expect(refused.response.headers.get('link')).toBeNull();
  expect(await refused.response.json()).toMatchObject({ code: 'SPENDING_CAP_REACHED' });
  await setCaps({ perTurn: 1 });
  const answer = await user.ask({ content: 'call tools for ever', modelId: 'calls' });
  expect(await user.ended(answer.turnId)).toMatchObject({ status: 'failed', error: { code: 'SPENDING_CAP_REACHED' } });
  expect(await settled(user)).toMatchObject({ spent: 2 * micro });
});

test('A repeated message costs nothing more', async () => {
  const user = await buyer('again', 5);
  const body = { content: 'once', modelId: 'calls', outboxItemId: 'once' };
  await user.ask(body);
  await user.ask(body);
  expect(await settled(user)).toMatchObject({ spent: micro });
});

test('A call whose process is killed midway is billed once', async () => {
  const user = await buyer('killed', 100);
  const usage = { inputTokens: 100, outputTokens: 100 };
  const stream = await user.send({
    ...{ content: fake({ tokens: 100, intervalMs: 20, usage }, 'killed'), modelId: 'tokens' },
  });
  const { turnId } = idsOf(stream);
  await collect(stream, ({ text }) => text.includes('w3 '));
  expect((await balances(user)).reserved).toBeGreaterThan(0);
  await product.process.kill('SIGKILL');
  await product.restart();
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  expect(await settled(user)).toMatchObject({ spent: 1.1 * micro, available: 98.9 * micro });
});
