import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI, { APIError } from 'openai';
import { balancesOf, buildCredits } from '../builders/billing.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { waitFor } from '../support/waitFor.ts';

/** `client.embeddings` of OpenAI's own client, with a provider that has them. */
const folder = mkdtempSync(join(tmpdir(), 'atrium-models-'));
let product: TestProduct;
let user: ChatUser;
let client: OpenAI;
beforeAll(async () => {
  const file = join(folder, 'models.yaml');
  const priced = {
    id: 'fake-embeds',
    provider: 'compatible',
    model: 'fake-embeddings',
    pricingRates: [{ label: 'Input', creditsPerUnit: 1, unit: '1k tokens' }],
  };
  const free = { id: 'free-embeds', provider: 'compatible', model: 'fake-embeddings' };
  const models = [{ id: 'fake-1', provider: 'compatible', model: 'fake-1' }];
  writeFileSync(file, JSON.stringify({ models, embeddingModels: [priced, free] }));
  product = await buildProduct({
    ATRIUM_MODELS_FILE: file,
    ATRIUM_BILLING_ENFORCED: 'true',
  });
  user = await product.user();
  client = clientOf(user);
});
afterAll(async () => {
  await product.close();
  rmSync(folder, { recursive: true });
});

const clientOf = ({ token }: ChatUser) => new OpenAI({ apiKey: token, baseURL: `${product.url}/v1`, maxRetries: 0 });

test('One text, many texts and token ids become vectors in their order', async () => {
  const one = await client.embeddings.create({ model: 'free-embeds', input: 'One' });
  expect(one).toMatchObject({ object: 'list', model: 'free-embeds', usage: { prompt_tokens: 3, total_tokens: 3 } });
  // OpenAI's client asks for base64 by itself, and decodes it.
  expect(one.data[0]?.embedding.slice(0, 2)).toEqual([3, 0]);
  const many = await client.embeddings.create({ model: 'free-embeds', input: ['a', 'bb', 'ccc'] });
  expect(many.data.map(({ index, embedding }) => [index, embedding[0]])).toEqual([
    [0, 1],
    [1, 2],
    [2, 3],
  ]);
  const ids = await client.embeddings.create({ model: 'free-embeds', input: [[1, 2], [3]] });
  expect(ids.data.map(({ embedding }) => embedding[0])).toEqual([2, 1]);
});

test('The encoding and the dimensions are those that the client asks for', async () => {
  const floats = await client.embeddings.create({
    model: 'free-embeds',
    input: 'abcd',
    dimensions: 5,
    encoding_format: 'float',
  });
  expect(floats.data[0]?.embedding).toEqual([4, 0, 0.25, 0.25, 0.25]);
  const response = await user.fetch('/v1/embeddings', {
    method: 'POST',
    body: { model: 'free-embeds', input: 'abcd', dimensions: 5, encoding_format: 'base64' },
  });
  const { data } = (await response.json()) as { data: { embedding: string }[] };
  const bytes = Buffer.from(data[0]?.embedding ?? '', 'base64');
  expect([...new Float32Array(new Uint8Array(bytes).buffer)]).toEqual([4, 0, 0.25, 0.25, 0.25]);
});

test('Models for embeddings can be retrieved, but are not listed for chats', async () => {
  expect(await client.models.retrieve('fake-embeds')).toMatchObject({ id: 'fake-embeds', object: 'model' });
  const ids: string[] = [];
  for await (const { id } of client.models.list()) ids.push(id);
  expect(ids).not.toContain('fake-embeds');
});

test('A model of the other kind, or none, is refused with what there is', async () => {
  const refused = (message: RegExp) => ({
    ...{ status: 404, code: 'model_not_found', param: 'model' },
    message: expect.stringMatching(message),
  });
  await expect(client.embeddings.create({ model: 'fake-1', input: 'x' })).rejects.toMatchObject(
    refused(/makes no embeddings\. Available are: fake-embeds, free-embeds, demo-embedding\.$/),
  );
  await expect(client.embeddings.create({ model: 'gone', input: 'x' })).rejects.toMatchObject(
    refused(/no such model for embeddings\. Available are: fake-embeds/),
  );
  const messages = [{ role: 'user' as const, content: 'x' }];
  await expect(client.chat.completions.create({ model: 'free-embeds', messages })).rejects.toMatchObject(
    refused(/answers no chats: use it with POST \/v1\/embeddings/),
  );
});

test('The demo’s embeddings need no provider and no credits', async () => {
  const { data, usage } = await client.embeddings.create({ model: 'demo-embedding', input: ['A boat', 'A boat'] });
  expect(data[0]?.embedding).toHaveLength(256);
  expect(data[0]?.embedding).toEqual(data[1]?.embedding);
  expect(usage).toEqual({ prompt_tokens: 4, total_tokens: 4 });
});

test('The tokens are booked as the space’s, and nothing without credits', async () => {
  const { pool } = product.environment.database;
  const spent = async (spaceId: string) => {
    const sql = "SELECT COALESCE(SUM(cost), 0) AS micro FROM billing_holds WHERE space_id = ? AND status = 'settled'";
    const [rows] = await pool.query(sql, [spaceId]);
    return Number((rows as { micro: string }[])[0]?.micro);
  };
  const poor = await product.user();
  await expect(clientOf(poor).embeddings.create({ model: 'fake-embeds', input: 'x' })).rejects.toMatchObject({
    status: 402,
    code: 'CREDITS_EXHAUSTED',
  });
  await buildCredits(product.environment.database, 10, poor.spaceId);
  // Each of these letters has three bytes, and is one token here.
  await clientOf(poor).embeddings.create({ model: 'fake-embeds', input: '€'.repeat(2_000) });
  expect(await spent(poor.spaceId)).toBe(2_000_000);
});

test('A provider that counts more than the text can have been held for leaves no debt', async () => {
  const { database } = product.environment;
  const owner = await product.user();
  await buildCredits(database, 1, owner.spaceId);
  // 400 bytes: at most 200 tokens and 8, so of ten calls at once four are paid, and six are refused.
  const input = 'count 400 '.padEnd(400, 'x');
  const sent = Array.from({ length: 10 }, () => clientOf(owner).embeddings.create({ model: 'fake-embeds', input }));
  const outcomes = await Promise.allSettled(sent);
  const codes = outcomes.map((one) => (one.status === 'fulfilled' ? 'paid' : (one.reason as APIError).code));
  expect(codes.toSorted()).toEqual([...Array(6).fill('CREDITS_EXHAUSTED'), ...Array(4).fill('paid')]);
  const [paid] = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  expect(paid?.usage.prompt_tokens).toBe(208);
  expect(await balancesOf(database, owner.spaceId)).toMatchObject({ available: 1_000_000 - 4 * 208_000 });
  expect(await balancesOf(database, owner.spaceId)).not.toHaveProperty('debt');
});

test.each(['1e300', '9e15', '-1', '0.5', '65536'])('A count of %s is a failed call, and free', async (count) => {
  const { database } = product.environment;
  const owner = await product.user();
  await buildCredits(database, 10, owner.spaceId);
  const call = clientOf(owner).embeddings.create({ model: 'fake-embeds', input: `count ${count}` });
  await expect(call).rejects.toMatchObject({ status: 502, code: 'PROVIDER_BAD_RESPONSE' });
  expect(await balancesOf(database, owner.spaceId)).toMatchObject({ available: 10_000_000 });
});

test('A call is booked although its client leaves before the answer', async () => {
  const { database } = product.environment;
  const owner = await product.user();
  await buildCredits(database, 10, owner.spaceId);
  const [asked, answers] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const atOnce = product.provider.beforeEmbedding;
  product.provider.beforeEmbedding = () => {
    asked.resolve();
    return answers.promise;
  };
  try {
    const leaving = new AbortController();
    const { signal } = leaving;
    const call = clientOf(owner).embeddings.create({ model: 'fake-embeds', input: 'x'.repeat(100) }, { signal });
    await asked.promise;
    leaving.abort();
    await expect(call).rejects.toThrow();
    // Long enough for the server to notice: it answers another request of the same user meanwhile.
    await owner.fetch('/v1/models');
    expect(await balancesOf(database, owner.spaceId)).toMatchObject({ reserved: 58_000 });
  } finally {
    answers.resolve();
    product.provider.beforeEmbedding = atOnce;
  }
  const isBooked = async () => (await balancesOf(database, owner.spaceId)).available === 10_000_000 - 58_000;
  await waitFor('the call to be booked', isBooked);
});

test('A call that fails costs nothing', async () => {
  const other = await product.user();
  await buildCredits(product.environment.database, 10, other.spaceId);
  const failing = clientOf(other).embeddings.create({ model: 'fake-embeds', input: 'fail 400' });
  await expect(failing).rejects.toMatchObject({ status: 400, code: 'PROVIDER_REFUSED' });
  await expect(clientOf(other).embeddings.create({ model: 'fake-embeds', input: 'fail 500' })).rejects.toMatchObject({
    status: 502,
    code: 'PROVIDER_FAILED',
  });
  await expect(clientOf(other).embeddings.create({ model: 'fake-embeds', input: 'fail 429' })).rejects.toMatchObject({
    status: 429,
    code: 'PROVIDER_RATE_LIMITED',
    type: 'rate_limit_error',
  });
  const [rows] = await product.environment.database.pool.query('SELECT status FROM billing_holds WHERE space_id = ?', [
    other.spaceId,
  ]);
  expect(rows).toEqual(Array.from({ length: 3 }, () => ({ status: 'released' })));
});

test.each([
  ['no text', { input: [] }, /\/input must not be empty/],
  ['an empty text', { input: '' }, /\/input must not be empty/],
  ['an empty text among others', { input: ['x', ''] }, /\/input\/1 must not be empty/],
  ['too many texts', { input: Array.from({ length: 2_049 }, () => 'x') }, /\/input must have at most/],
  ['a number', { input: 5 }, /\/input must be/],
  ['an unknown encoding', { input: 'x', encoding_format: 'hex' }, /encoding_format/],
])('%s is refused', async (_what, body, message) => {
  const error = await client.embeddings
    .create({ model: 'free-embeds', ...body } as never)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ status: 400, message: expect.stringMatching(message) });
});

test('Too many texts are refused by their number', async () => {
  const input = Array.from({ length: 2_049 }, () => 'x');
  await expect(client.embeddings.create({ model: 'free-embeds', input })).rejects.toMatchObject({
    message: expect.stringMatching(/^400 \/input .*2048/),
    param: 'input',
  });
});

test('Another tenant’s space cannot pay', async () => {
  const stranger = await product.user();
  const headers = { 'x-space-id': stranger.spaceId };
  await expect(client.embeddings.create({ model: 'free-embeds', input: 'x' }, { headers })).rejects.toMatchObject({
    status: 404,
  });
});
