import * as ai7 from 'ai';
import * as ai5 from 'ai5';
import * as ai6 from 'ai6';
import { type ChatUser, idsOf, textOf } from '../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../builders/product.ts';
import { collect } from '../support/sseClient.ts';

/** The parsers of the three major versions whose clients attach to the stream. */
const versions = { '5': ai5, '6': ai6, '7': ai7 } as const;
type Version = keyof typeof versions;
const names = Object.keys(versions) as Version[];

/** A message as a client has put it together. */
interface BuiltMessage {
  id: string;
  role: string;
  parts: { type: string; text?: string }[];
  metadata?: unknown;
}

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

const tool = (name: string) => ({ id: `call-${name}`, name, arguments: '{"deep":{"a":[1,null,"ü"]}}' });
const scenarios: Record<string, string> = {
  'a plain answer': 'Hello',
  'reasoning, then text in any script': fake({
    reasoning: ['Let me ', 'think.'],
    tokens: ['Grüße, ', '漢字 👩‍👩‍👧\n\n', '`data: x`'],
  }),
  'many tokens, paced': fake({ tokens: 60, intervalMs: 2 }),
  'tool calls and what follows them': fake({ tokens: ['Looking.'], toolCalls: [tool('search'), tool('lookUp')] }),
  'a call whose input is no JSON': fake({ toolCalls: [{ ...tool('broken'), arguments: '{"a":' }] }),
  'an answer at its limit': fake({ tokens: ['And so'], finishReason: 'length' }),
};

/** Reads chunks as the version's own hook does, and fails on the first chunk that it does not take. */
async function build(version: Version, stream: ReadableStream): Promise<BuiltMessage | undefined> {
  const { readUIMessageStream } = versions[version] as typeof ai7;
  let last: BuiltMessage | undefined;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
  return last;
}

/** The version's parser on bytes that arrive in pieces. */
function parse(version: Version, bytes: ReadableStream<Uint8Array>): ReadableStream {
  const { parseJsonEventStream, uiMessageChunkSchema } = versions[version] as typeof ai7;
  return parseJsonEventStream({ stream: bytes, schema: uiMessageChunkSchema }).pipeThrough(
    new TransformStream({
      transform(result, controller) {
        if (!result.success) throw result.error;
        controller.enqueue(result.value);
      },
    }),
  );
}

/** A recording, in pieces of `size` bytes. */
function inPieces(bytes: Buffer, size: number): ReadableStream<Uint8Array> {
  return ReadableStream.from(
    (function* () {
      for (let at = 0; at < bytes.length; at += size) yield new Uint8Array(bytes.subarray(at, at + size));
    })(),
  );
}

describe.each(Object.entries(scenarios))('%s', (_name, content) => {
  test('Each version builds the stored message, from a recording and live', async () => {
    const stream = await user.send({ content });
    const recorded = await collect(stream);
    expect(recorded.complete).toBe(true);
    const { turnId, threadId } = idsOf(stream);
    const stored = (await user.messages(threadId)).at(-1);
    expect(stored?.turnId).toBe(turnId);
    const text = textOf(stored?.parts ?? []);

    for (const version of names) {
      for (const size of [3, 1_000_000]) {
        const built = await build(version, parse(version, inPieces(stream.raw(), size)));
        expect([version, built?.id, built?.role]).toEqual([version, stored?.id, 'assistant']);
        expect([version, built?.parts.map(({ text: said }) => said ?? '').join('')]).toEqual([
          version,
          stored?.parts.map((part) => ('text' in part ? part.text : '')).join(''),
        ]);
        expect(built?.metadata).toMatchObject({ ...stored?.metadata });
        // Exactly the parts that are stored.
        expect([version, built?.parts.map(({ type }) => type)]).toEqual([
          version,
          stored?.parts.map(({ type }) => type),
        ]);
      }
      // Live, by the version's own transport, with only the URL and the credential set.
      const { DefaultChatTransport } = versions[version] as typeof ai7;
      const transport = new DefaultChatTransport({
        api: `${product.url}/chat/stream`,
        headers: { Authorization: `Bearer ${user.token}` },
      });
      const live = await transport.sendMessages({
        chatId: `live-${version}-${turnId}`,
        messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: content }] }],
        trigger: 'submit-message',
        messageId: undefined,
        abortSignal: undefined,
      });
      const built = await build(version, live);
      expect([version, textOf((built?.parts ?? []) as Parameters<typeof textOf>[0])]).toEqual([version, text]);
    }
  });
});

test('The latest version builds exactly the parts that are stored', async () => {
  const content = scenarios['tool calls and what follows them'] ?? '';
  const stream = await user.send({ content });
  await collect(stream);
  const stored = (await user.messages(idsOf(stream).threadId)).at(-1);
  const built = await build('7', parse('7', inPieces(stream.raw(), 100)));
  const plain = JSON.parse(JSON.stringify(built?.parts)) as unknown[];
  expect(plain).toEqual(stored?.parts);
});

test('a rebuilt stream gives the same message', async () => {
  const first = await user.ask({ content: scenarios['tool calls and what follows them'] });
  const stored = (await user.messages(first.threadId)).at(-1);
  const { sequelize } = product.environment.database;
  await sequelize.query('UPDATE turns SET log_purged_at = NOW(3) WHERE id = ?', { replacements: [first.turnId] });
  const rebuilt = await user.open(`/chat/turns/${first.turnId}/stream`);
  await collect(rebuilt);
  for (const version of names) {
    const built = await build(version, parse(version, inPieces(rebuilt.raw(), 50)));
    expect(built?.id).toBe(stored?.id);
    expect(textOf((built?.parts ?? []) as Parameters<typeof textOf>[0])).toBe(textOf(stored?.parts ?? []));
  }
});

test('Each version takes a stop as an end, and a failure as an error', async () => {
  const stopping = await user.send({ content: fake({ tokens: 3, fail: { how: 'stall' } }) });
  await collect(stopping, ({ text }) => text.includes('w2'));
  await user.fetch(`/chat/turns/${idsOf(stopping).turnId}/stop`, { method: 'POST' });
  await collect(stopping);
  const failing = await user.send({ content: fake({ status: 400 }) });
  await collect(failing);
  for (const version of names) {
    const stopped = await build(version, parse(version, inPieces(stopping.raw(), 40)));
    expect(stopped?.parts).toMatchObject([{ type: 'step-start' }, { type: 'text', text: 'w0 w1 w2 ', state: 'done' }]);
    await expect(build(version, parse(version, inPieces(failing.raw(), 40)))).rejects.toThrow(
      'The model provider refused the request.',
    );
  }
});
