import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { z } from 'zod';
import type { ChatUser, ThreadBody } from '../builders/chat.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../builders/product.ts';

/** LangChain's models for OpenAI, by chat completions. */
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_COMPATIBLE_EMBEDDING_MODELS: 'fake-embeds' });
  user = await product.user();
});
afterAll(() => product.close());

const options = () => ({ apiKey: user.token, configuration: { baseURL: `${product.url}/v1` } });
const chat = () => new ChatOpenAI({ ...options(), model: 'fake-1' });

const search = tool(({ words }: { words: string }) => `Found: ${words}`, {
  name: 'web_search',
  description: 'Searches the web.',
  schema: z.object({ words: z.string() }),
});

test('A question is answered, whole and as a stream', async () => {
  expect((await chat().invoke('Hello')).content).toBe('Hello from the fake provider.');
  const pieces: string[] = [];
  for await (const { content } of await chat().stream(fake({ tokens: 5 }))) pieces.push(String(content));
  expect(pieces.join('')).toBe('w0 w1 w2 w3 w4 ');
});

test('Tools are called in a loop, and the loop is one thread', async () => {
  const bound = chat().bindTools([search], { tool_choice: 'auto' });
  const toolCalls = [{ id: 'call-1', name: 'web_search', arguments: '{"words":"Ada"}' }];
  const question = new HumanMessage(fake({ tokens: ['Searching.'], toolCalls }, 'Who was Ada?'));
  const asked = await bound.invoke([question]);
  const [call] = asked.tool_calls ?? [];
  expect(call).toMatchObject({ name: 'web_search', args: { words: 'Ada' } });
  const content = await search.invoke({ words: 'Ada' });
  const result = new ToolMessage({ tool_call_id: call?.id ?? '', content });
  const told = await bound.invoke([question, asked, result]);
  expect(told.content).toBe('Hello from the fake provider.');
  expect(rolesOf(requestsWith(product.provider, 'Found: Ada')[0])).toEqual(['system', 'user', 'assistant', 'tool']);
  const { data } = await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`);
  expect(data.filter(({ title }) => title?.startsWith('Who was Ada?'))).toHaveLength(1);
});

test('Structured output reaches the provider as its schema', async () => {
  const schema = z.object({ name: z.string() });
  const structured = chat().withStructuredOutput(schema, { method: 'jsonSchema', name: 'person' });
  expect(await structured.invoke(fake({ tokens: ['{"name":', '"Ada"}'] }, 'As JSON'))).toEqual({ name: 'Ada' });
  expect(requestsWith(product.provider, 'As JSON')[0]?.body.response_format).toMatchObject({
    type: 'json_schema',
    json_schema: { name: 'person' },
  });
});

test('Texts are embedded in batches', async () => {
  const embeddings = new OpenAIEmbeddings({ ...options(), model: 'fake-embeds', batchSize: 2 });
  const vectors = await embeddings.embedDocuments(['a', 'bb', 'ccc']);
  expect(vectors.map(([length]) => length)).toEqual([1, 2, 3]);
  expect((await embeddings.embedQuery('four'))[0]).toBe(4);
});
