import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI, { APIError } from 'openai';
import { buildCredits } from '../builders/billing.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';

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
  await expect(client.embeddings.create({ model: 'fake-1', input: 'x' })).rejects.toMatchObject({
    status: 404,
    code: 'model_not_found',
  });
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
  await clientOf(poor).embeddings.create({ model: 'fake-embeds', input: 'y'.repeat(2_000) });
  expect(await spent(poor.spaceId)).toBe(2_000_000);
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
  const [rows] = await product.environment.database.pool.query('SELECT status FROM billing_holds WHERE space_id = ?', [
    other.spaceId,
  ]);
  expect(rows).toEqual([{ status: 'released' }, { status: 'released' }]);
});

test.each([
  ['no text', { input: [] }],
  ['an empty text', { input: '' }],
  ['too many texts', { input: Array.from({ length: 2_049 }, () => 'x') }],
  ['an unknown encoding', { input: 'x', encoding_format: 'hex' }],
])('%s is refused', async (_what, body) => {
  const error = await client.embeddings
    .create({ model: 'free-embeds', ...body } as never)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ status: 400 });
});

test('Another tenant’s space cannot pay', async () => {
  const stranger = await product.user();
  const headers = { 'x-space-id': stranger.spaceId };
  await expect(client.embeddings.create({ model: 'free-embeds', input: 'x' }, { headers })).rejects.toMatchObject({
    status: 404,
  });
});
