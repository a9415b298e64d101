import { join } from 'node:path';
import type { ChatUser } from '../builders/chat.ts';
import { onePixelPng } from '../builders/files.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../builders/product.ts';
import { canHavePython, startPython } from '../support/python.ts';

/** OpenAI's own client for Python. chatByPython.py calls the client, and prints what it got. */
const program = join(import.meta.dirname, 'chatByPython.py');

const given = {
  model: 'fake-1',
  slow: fake({ tokens: 30, intervalMs: 2 }),
  weather: fake({ toolCalls: [{ id: 'call-1', name: 'get_weather', arguments: '{"place":"Oslo"}' }] }),
  picture: onePixelPng.toString('base64'),
  failing: fake({ status: 400 }),
};

(canHavePython() ? describe : describe.skip)('with Python', () => {
  let product: TestProduct;
  let user: ChatUser;
  let printed: Map<string, unknown>;

  beforeAll(async () => {
    product = await buildProduct();
    user = await product.user();
    const python = await startPython('openai==3.54.0');
    const output = await python.run([program, JSON.stringify(given)], { URL: product.url, KEY: user.token });
    const lines = output.trim().split('\n');
    printed = new Map(
      lines.map((line) => {
        const { name, value } = JSON.parse(line) as { name: string; value: unknown };
        return [name, value];
      }),
    );
  }, 300_000);
  afterAll(() => product.close());

  test('The client lists the models', () => expect(printed.get('models')).toEqual(['fake-1', 'demo']));

  test('A whole answer has its usage', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 };
    expect(printed.get('whole')).toMatchObject({ text: 'Hello from the fake provider.', usage });
  });

  test('A stream has its usage', () => {
    const text = Array.from({ length: 30 }, (_, index) => `w${index} `).join('');
    expect(printed.get('streamed')).toEqual({ text, finish: ['stop'], tokens: 40 });
  });

  test('Results of the client’s functions get an answer of their own', () => {
    expect(printed.get('tools')).toEqual({
      asked: 'tool_calls',
      arguments: { place: 'Oslo' },
      text: 'Hello from the fake provider.',
      another: true,
    });
    expect(requestsWith(product.provider, 'Snow, says Python.')).toHaveLength(1);
  });

  test('A picture reaches the model', () => {
    expect(printed.get('picture')).toBe('stop');
    expect(requestsWith(product.provider, 'A picture from Python')).toHaveLength(1);
  });

  test('Metadata and a header name the same thread', async () => {
    const [first, second] = printed.get('threads') as [string, string];
    expect(second).toBe(first);
    expect((await user.messages(first)).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
  });

  test('Errors have the client’s own classes', () => {
    expect(printed.get('errors')).toEqual([
      ['NotFoundError', 'model_not_found', 'model'],
      ['BadRequestError', 'FIELD_UNSUPPORTED', 'n'],
    ]);
    expect(printed.get('failed')).toBe('PROVIDER_REFUSED');
  });
});
