import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import type { ChatUser } from '../builders/chat.ts';
import { buildPdf } from '../builders/files.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../builders/product.ts';

/** The AI SDK with its provider for servers that speak OpenAI's API. */
let product: TestProduct;
let user: ChatUser;
let provider: ReturnType<typeof createOpenAICompatible>;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_COMPATIBLE_EMBEDDING_MODELS: 'fake-embeds' });
  user = await product.user();
  provider = createOpenAICompatible({ name: 'atrium', apiKey: user.token, baseURL: `${product.url}/v1` });
});
afterAll(() => product.close());

test('Tools run in several steps, with a system prompt that changes between them', async () => {
  const places: string[] = [];
  const navigate = tool({
    description: 'Opens a page.',
    inputSchema: z.object({ url: z.string() }),
    execute: ({ url }) => {
      places.push(url);
      return 'The page is open';
    },
  });
  const toolCalls = [{ id: 'call-1', name: 'browser_navigate', arguments: '{"url":"https://example.com/"}' }];
  const { text, steps } = await generateText({
    model: provider('fake-1'),
    system: 'The first prompt.',
    prompt: fake({ toolCalls }, 'Open the page'),
    tools: { browser_navigate: navigate },
    stopWhen: stepCountIs(3),
    prepareStep: ({ stepNumber }) => (stepNumber === 0 ? {} : { system: 'The second prompt.', activeTools: [] }),
  });
  expect([text, steps.length, places]).toEqual(['Hello from the fake provider.', 2, ['https://example.com/']]);
  const [request] = requestsWith(product.provider, 'The page is open');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool']);
  expect(request?.body.messages).toMatchObject([{ content: 'The second prompt.' }, {}, {}, {}]);
  expect(request?.body.tools).toBeUndefined();
});

test('Aborting a stream stops the turn', async () => {
  const aborting = new AbortController();
  const { textStream, response } = streamText({
    model: provider('fake-1'),
    prompt: fake({ tokens: 3_000, intervalMs: 50 }, 'Abort me'),
    abortSignal: aborting.signal,
    onError: () => undefined,
  });
  Promise.resolve(response).catch(() => undefined);
  for await (const text of textStream) {
    if (text !== '') break;
  }
  aborting.abort();
  const [request] = requestsWith(product.provider, 'Abort me');
  expect(request && (await product.provider.closed(request)).closedByClient).toBe(true);
});

test('A document reaches a model that reads its text', async () => {
  const data = buildPdf(['The number is seventeen']);
  await generateText({
    model: provider('fake-1'),
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Which number?' },
          { type: 'file', data, mediaType: 'application/pdf', filename: 'number.pdf' },
        ],
      },
    ],
  });
  expect(JSON.stringify(requestsWith(product.provider, 'Which number?')[0]?.body.messages)).toContain('seventeen');
});

test('Texts are embedded', async () => {
  const { embeddings, usage } = await embedMany({
    model: provider.embeddingModel('fake-embeds'),
    values: ['a', 'bb'],
  });
  expect(embeddings.map(([length]) => length)).toEqual([1, 2]);
  expect(usage.tokens).toBe(3);
});
