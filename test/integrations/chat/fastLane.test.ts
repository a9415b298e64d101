import fc from 'fast-check';
import { readAnthropicEvent, readChatEvent, readResponsesEvent } from '../../../integrations/chat/deltaEvents.ts';
import { FastLane } from '../../../integrations/chat/fastLane.ts';
import { type FakeProvider, startFakeProvider } from '../../fakes/openaiServer.ts';
import type { FakeScript, FakeToolCall } from '../../fakes/script.ts';
import { addTool, answer, joined, runnerFor } from './support.ts';

const chat = (content: unknown, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'x', created: 1, choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more })}\n\n`;

/** A lane. `around` has the text that went past the SDK; `send` returns the bytes that are left to the SDK. */
function lane(read = readChatEvent) {
  const around: string[] = [];
  const fast = new FastLane(read, (text) => around.push(text));
  const send = (text: string) => fast.bytes(Buffer.from(text))?.toString() ?? '';
  return { fast, around, send };
}

/** A lane that is open for text: the SDK has emitted everything that it got. */
function openLane() {
  const opened = lane();
  opened.send(chat('first'));
  opened.fast.emitted('first');
  return opened;
}

describe('the lane around the SDK', () => {
  test('leaves the first delta to the SDK, and takes the others once the SDK has emitted everything', () => {
    const { fast, around, send } = lane();
    expect(send(chat('a'))).toBe(chat('a'));
    expect(send(chat('b'))).toBe(chat('b'));
    fast.emitted('a');
    expect(send(chat('c'))).toBe(chat('c'));
    fast.emitted('b');
    fast.emitted('c');
    expect(send(chat('d') + chat('e'))).toBe('');
    expect(send(chat('"f"\n\\ü🙂'))).toBe('');
    expect(around).toEqual(['de', '"f"\n\\ü🙂']);
  });

  test('assembles an event that is cut at any byte', () => {
    const event = Buffer.from(chat('größe'));
    for (let cut = 1; cut < event.length; cut++) {
      const { fast, around } = openLane();
      expect(fast.bytes(event.subarray(0, cut))).toBeUndefined();
      expect(fast.bytes(event.subarray(cut))).toBeUndefined();
      expect(around).toEqual(['größe']);
    }
  });

  test.each([
    ['a finish reason', `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'stop' }] })}\n\n`],
    ['usage beside the delta', chat('x', { usage: { prompt_tokens: 1 } })],
    ['a tool call', `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0 }] } }] })}\n\n`],
    ['broken JSON', 'data: {"choices":[{"delta":{"content":"x\n\n'],
    ['a raw control character in the text', chat('x').replace('"x"', '"\u0001"')],
    ['an error', 'data: {"error":{"message":"no"}}\n\n'],
    ['an event with an id', `id: 1\n${chat('x')}`],
    ['the end', 'data: [DONE]\n\n'],
    ['a comment', ': keep-alive\n\n'],
  ])('leaves %s to the SDK, byte for byte', (_name, event) => {
    const { around, send } = openLane();
    expect(send(event)).toBe(event);
    expect(around).toEqual([]);
  });

  test('waits for the SDK again after an event that was left to it', () => {
    const { fast, around, send } = openLane();
    const withUsage = chat('x', { usage: {} });
    send(withUsage);
    expect(send(chat('y'))).toBe(chat('y'));
    fast.emitted('x');
    expect(send(chat('z'))).toBe(chat('z'));
    fast.emitted('y');
    fast.emitted('z');
    expect(send(chat('!'))).toBe('');
    expect(around).toEqual(['!']);
  });

  test('closes for good if the SDK emits unexpected text', () => {
    const { fast, send } = lane();
    send(chat('a'));
    fast.emitted('A');
    expect(send(chat('b'))).toBe(chat('b'));
    fast.emitted('b');
    expect(send(chat('c'))).toBe(chat('c'));
  });

  test('closes if lines end with a carriage return', () => {
    const { send } = openLane();
    const event = 'data: {"choices":[]}\r\n\r\n';
    expect(send(event)).toBe(event);
    expect(send(chat('x'))).toBe(chat('x'));
  });

  test('leaves everything to the SDK while the reader is busy', () => {
    const { fast, send } = openLane();
    fast.pause(true);
    expect(send(chat('x'))).toBe(chat('x'));
    fast.emitted('x');
    fast.pause(false);
    expect(send(chat('y'))).toBe('');
  });

  test('returns the bytes of an unfinished event at the end', () => {
    const { fast, send } = openLane();
    send(chat('x').slice(0, 20));
    expect(fast.end()?.toString()).toBe(chat('x').slice(0, 20));
  });

  test('leaves the first delta of every part to the SDK', () => {
    const { fast, around, send } = openLane();
    const thought = `data: ${JSON.stringify({ choices: [{ delta: { reasoning_content: 'hm' } }] })}\n\n`;
    expect(send(thought)).toBe(thought);
    fast.emitted('hm');
    expect(send(thought)).toBe('');
    expect(send(chat('x'))).toBe(chat('x'));
    expect(around).toEqual(['hm']);
  });

  test("reads Anthropic's events", () => {
    const { fast, around, send } = lane(readAnthropicEvent);
    const delta = (text: string) =>
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${text}"}}\n\n`;
    send('event: ping\ndata: {"type":"ping"}\n\n');
    send(delta('a'));
    fast.emitted('a');
    expect(send(delta('b'))).toBe('');
    expect(around).toEqual(['b']);
  });

  test("reads the events of OpenAI's responses, and tells their items apart", () => {
    const { fast, around, send } = lane(readResponsesEvent);
    let sequence_number = 0;
    const delta = (text: string, item_id = 'one') => {
      const data = { type: 'response.output_text.delta', item_id, delta: text, sequence_number: sequence_number++ };
      return `event: response.output_text.delta\ndata: ${JSON.stringify(data)}\n\n`;
    };
    send(delta('a'));
    fast.emitted('a');
    expect(send(delta('b') + delta('c'))).toBe('');
    const other = delta('d', 'two');
    expect(send(other)).toBe(other);
    expect(around).toEqual(['bc']);
  });
});

describe('a call with the lane and a call without it', () => {
  let fake: FakeProvider;
  beforeAll(async () => {
    fake = await startFakeProvider();
  });
  afterAll(() => fake.stop());

  const toolCalls = (count: number): FakeToolCall[] =>
    Array.from({ length: count }, (_, index) => ({ id: `call-${index}`, name: 'add', arguments: `{"a":${index}}` }));
  const piece = fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.string({ unit: 'grapheme', maxLength: 4 }),
    fc.constant('\n\n'),
  );
  const script: fc.Arbitrary<FakeScript> = fc.record({
    id: fc.constant('answer'),
    reasoning: fc.array(piece, { maxLength: 6 }),
    tokens: fc.array(piece, { minLength: 1, maxLength: 40 }).map((tokens) => [...tokens, 'end']),
    tokensPerWrite: fc.integer({ min: 1, max: 20 }),
    intervalMs: fc.constantFrom(0, 0, 1),
    toolCalls: fc.integer({ min: 0, max: 2 }).map(toolCalls),
  });

  test.each(['local', 'claude-sonnet-4-5', 'gpt-5.1'])('give the same parts for %s', async (modelId) => {
    const withLane = runnerFor(fake.url);
    const withoutLane = runnerFor(fake.url, { fetch: globalThis.fetch });
    await fc.assert(
      fc.asyncProperty(script, async (each) => {
        fake.enqueue(each, each);
        const call = { modelId, tools: [addTool] };
        const [fast, slow] = [await answer(withLane, call), await answer(withoutLane, call)];
        expect(joined(fast.parts)).toEqual(joined(slow.parts));
        expect(fast.result.usage).toEqual(slow.result.usage);
      }),
      { numRuns: 100 },
    );
  });
});
