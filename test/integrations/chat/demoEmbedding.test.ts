import { embedByDemo } from '../../../integrations/chat/demoEmbedding.ts';
import { type EmbeddingInput, inputsOf } from '../../../integrations/chat/embeddings.ts';

const embed = (input: EmbeddingInput, dimensions?: number) => embedByDemo(inputsOf(input), dimensions);
const product = ([a = [], b = []]: number[][]) => a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);

test('The same text has the same vector, of length 1', async () => {
  const { vectors, inputTokens } = await embed(['The red boat.', 'the RED boat', '?!', '?!']);
  expect(vectors.map((vector) => vector.length)).toEqual([256, 256, 256, 256]);
  expect(vectors[0]).toEqual(vectors[1]);
  expect(product([vectors[0] ?? [], vectors[0] ?? []])).toBeCloseTo(1);
  expect(product([vectors[2] ?? [], vectors[3] ?? []])).toBeCloseTo(1);
  expect(inputTokens).toBe(9);
});

test('Texts that share words are nearer than those that share none', async () => {
  const { vectors } = await embed(['a red boat at sea', 'the red boat', 'tax returns'], 1_024);
  const [boat = [], other = [], taxes = []] = vectors;
  expect(product([boat, other])).toBeGreaterThan(product([boat, taxes]) + 0.3);
});

test('Token ids, one text and the number of dimensions are taken', async () => {
  expect((await embed([5, 6, 5], 8)).vectors.map(({ length }) => length)).toEqual([8]);
  expect(await embed([[5, 6], [7]])).toMatchObject({ vectors: { length: 2 }, inputTokens: 3 });
  expect((await embed('One text', 1)).vectors).toEqual([[1]]);
  await expect(embed('One text', 1_025)).rejects.toMatchObject({ code: 'PROVIDER_REFUSED' });
});
