import type { Config } from '../../../config/index.ts';
import type { EmbeddingModel } from '../../../integrations/chat/catalogue.ts';
import { createEmbedder, type EmbeddingInput } from '../../../integrations/chat/embeddings.ts';

// What a provider answers, as a client sees it. The text is JSON that `JSON.stringify` could not write.

const model = { adapter: 'compatible', providerModelId: 'e' } as EmbeddingModel;
const llm = { openai: {}, compatible: { baseUrl: 'http://127.0.0.1:9' }, idleTimeoutMs: 60_000 } as Config['llm'];
const embed = (text: string, input: EmbeddingInput = ['a', 'b']) =>
  createEmbedder(llm, async () => new Response(text)).embed({ model, input });
const two = (first: string, second: string, more = '') => `{"data":[${first},${second}]${more}}`;
const vector = '{"index":0,"embedding":[1,2]}';

test('Vectors are sorted by their indexes, and stay as they are without any', async () => {
  expect(await embed(two('{"index":1,"embedding":[3,4]}', vector))).toEqual({
    vectors: [
      [1, 2],
      [3, 4],
    ],
    inputTokens: undefined,
  });
  const { vectors } = await embed(two('{"embedding":[9]}', '{"embedding":[8]}'));
  expect(vectors).toEqual([[9], [8]]);
});

test.each([
  ['two vectors of one index', two(vector, vector)],
  ['an index that is missing', two(vector, '{"embedding":[3,4]}')],
  ['an index beyond the last', two(vector, '{"index":2,"embedding":[3,4]}')],
  ['too few vectors', `{"data":[${vector}]}`],
  ['no vectors', '{"data":[null,null]}'],
  ['an infinite number', two(vector, '{"index":1,"embedding":[1,1e999]}')],
  ['a number that no float holds', two(vector, '{"index":1,"embedding":[1,1e300]}')],
  ['vectors of two lengths', two(vector, '{"index":1,"embedding":[1]}')],
  ['empty vectors', two('{"index":0,"embedding":[]}', '{"index":1,"embedding":[]}')],
  ['more tokens than bytes', two(vector, '{"index":1,"embedding":[1,2]}', ',"usage":{"prompt_tokens":1000}')],
  ['a text', 'Hello'],
])('%s is no answer', async (_what, text) => {
  await expect(embed(text)).rejects.toMatchObject({ code: 'PROVIDER_BAD_RESPONSE' });
});

test('A vector of more dimensions than the contract has is no answer', async () => {
  const long = JSON.stringify({ data: [{ index: 0, embedding: Array(100_001).fill(0) }] });
  await expect(embed(long, 'a')).rejects.toMatchObject({ code: 'PROVIDER_BAD_RESPONSE' });
});

test('A plausible count is taken, of texts and of token ids', async () => {
  const counted = (count: number) => `{"data":[${vector}],"usage":{"prompt_tokens":${count}}}`;
  expect((await embed(counted(7), 'seven')).inputTokens).toBe(7);
  expect((await embed(counted(3), [1, 2, 3])).inputTokens).toBe(3);
  expect((await embed(`{"data":[${vector}],"usage":null}`, 'seven')).inputTokens).toBeUndefined();
});
