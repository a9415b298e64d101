import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough, type Readable, Transform } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { Channel } from '../../../integrations/computers/protocol/channel.ts';
import { type ChannelStream, windowBytes } from '../../../integrations/computers/protocol/channelStream.ts';
import {
  ChannelViolation,
  frameHeader,
  frameType,
  maxDataBytes,
} from '../../../integrations/computers/protocol/frames.ts';
import {
  encodeMessage,
  MessageDecoder,
  messageKind,
  readAnswer,
} from '../../../integrations/computers/protocol/messages.ts';

type Taker = (stream: ChannelStream, request: { kind?: string }) => unknown;

function channelOn(input: Readable, output: PassThrough, side: 'holder' | 'agent', onOpen: Taker = () => false) {
  const ended = Promise.withResolvers<Error>();
  const channel = new Channel(input, output, {
    side,
    onOpen: (request) => {
      const { kind } = request as { kind?: string };
      return kind === 'refused' ? undefined : (stream) => onOpen(stream, { kind });
    },
    onEnd: ended.resolve,
    maxStreams: 4,
    maxOpenBytes: 200,
  });
  return { channel, ended: ended.promise };
}

/** A holder and an agent. The bytes between them arrive in pieces of these sizes. */
function pair(onOpen: Taker, sizes: number[] = [65_536]) {
  const cut = () => {
    let at = 0;
    return new Transform({
      transform(chunk: Buffer, _encoding, done) {
        for (let from = 0; from < chunk.length; ) {
          const size = sizes[at++ % sizes.length] as number;
          this.push(chunk.subarray(from, from + size));
          from += size;
        }
        done();
      },
    });
  };
  const toAgent = new PassThrough();
  const toHolder = new PassThrough();
  const holder = channelOn(toHolder.pipe(cut()), toAgent, 'holder');
  const agent = channelOn(toAgent.pipe(cut()), toHolder, 'agent', onOpen);
  return { holder, agent, toAgent, toHolder };
}

/** Resolves also after an error, which `once` would throw. */
const closed = (stream: ChannelStream) => new Promise<void>((resolve) => stream.once('close', resolve));

const echo: Taker = (stream) => {
  stream.pipe(stream);
  return true;
};

it('a channel carries many streams both ways, wherever the bytes are cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 5 }),
      fc.array(fc.integer({ min: 0, max: 300_000 }), { minLength: 1, maxLength: 4 }),
      async (sizes, lengths) => {
        const { holder } = pair(echo, sizes.length === 1 && (sizes[0] ?? 0) < 100 ? [100] : sizes);
        await Promise.all(
          lengths.map(async (length) => {
            const stream = holder.channel.open({ kind: 'echo' });
            const bytes = randomBytes(length);
            stream.end(bytes);
            expect((await buffer(stream)).equals(bytes)).toBe(true);
          }),
        );
      },
    ),
    { numRuns: 20 },
  );
});

it('a channel works if its bytes arrive one by one', async () => {
  const { holder } = pair(echo, [1]);
  const stream = holder.channel.open({ kind: 'echo' });
  stream.end('all of this');
  expect(String(await buffer(stream))).toBe('all of this');
});

it('a stream that is not read gets at most its window of bytes, and does not block other streams', async () => {
  const taken: ChannelStream[] = [];
  const { holder } = pair((stream, request) => {
    taken.push(stream);
    if (request.kind === 'echo') stream.pipe(stream);
    return true;
  });
  const stalled = holder.channel.open({ kind: 'stalled' });
  stalled.write(Buffer.alloc(10 * windowBytes));
  const stream = holder.channel.open({ kind: 'echo' });
  stream.end(Buffer.alloc(3 * windowBytes, 1));
  expect((await buffer(stream)).length).toBe(3 * windowBytes);
  expect(taken[0]?.readableLength).toBeLessThanOrEqual(windowBytes);
  expect(stalled.writableNeedDrain).toBe(true);
});

it('a channel resets the other side of a destroyed stream, and refuses a stream without a taker', async () => {
  const taken: ChannelStream[] = [];
  const { holder } = pair((stream, request) => request.kind === 'known' && taken.push(stream) > 0);
  const stream = holder.channel.open({ kind: 'known' });
  stream.write('x');
  const refused = holder.channel.open({ kind: 'refused' });
  await closed(refused);
  const reset = closed(taken[0] as ChannelStream);
  stream.destroy();
  await reset;
  expect(taken[0]?.destroyed).toBe(true);
});

it('a channel limits the streams of the other side, and accepts new ones after those have ended', async () => {
  const { holder } = pair((stream) => stream.resume() !== undefined);
  const open = Array.from({ length: 4 }, () => holder.channel.open({}));
  const more = holder.channel.open({});
  await closed(more);
  for (const stream of open) stream.destroy();
  const taken = Array.from({ length: 4 }, () => holder.channel.open({}));
  await closed(holder.channel.open({}));
  expect(taken.map(({ destroyed }) => destroyed)).toEqual([false, false, false, false]);
});

it('all streams end with their connection', async () => {
  const { holder, toHolder } = pair(() => true);
  const stream = holder.channel.open({});
  toHolder.end();
  await closed(stream);
  await holder.ended;
  expect(holder.channel.open({}).destroyed).toBe(true);
});

describe('a hostile agent', () => {
  /** Sends these bytes of an agent to a holder. Returns the error that ends the channel. */
  async function heard(...parts: Buffer[]) {
    const input = new PassThrough();
    const { channel, ended } = channelOn(
      input,
      new PassThrough().resume() as PassThrough,
      'holder',
      (stream) => stream.pause() !== undefined,
    );
    channel.open({});
    input.write(Buffer.concat(parts));
    input.end();
    return ended;
  }
  const frame = (streamId: number, type: number, payload = Buffer.alloc(0), length = payload.length) =>
    Buffer.concat([frameHeader(streamId, type as 1, length), payload]);
  const open = frame(2, frameType.open, Buffer.from('{}'));
  const data = (length: number) => frame(2, frameType.data, Buffer.alloc(length));

  it.each<[string, Buffer[]]>([
    ['an unknown type', [frame(2, 9)]],
    ['a type 0', [frame(2, 0)]],
    ['an opening that is too long', [frame(2, frameType.open, Buffer.alloc(201))]],
    ['an opening that claims to be gigantic', [frame(2, frameType.open, Buffer.alloc(0), 0xffffffff)]],
    ['an opening that is no JSON', [frame(2, frameType.open, Buffer.from('{'))]],
    ['a number that is taken', [open, open]],
    ['a number of ours', [frame(3, frameType.open, Buffer.from('{}'))]],
    ['the number 0', [frame(0, frameType.open, Buffer.from('{}'))]],
    ['data of a stream that was never opened', [frame(4, frameType.data, Buffer.alloc(1))]],
    ['data of a stream of ours to come', [frame(3, frameType.data, Buffer.alloc(1))]],
    ['data that is empty', [open, data(0)]],
    ['data that is too long', [open, data(maxDataBytes + 1)]],
    ['more data than the window', [open, ...Array.from({ length: 5 }, () => data(maxDataBytes))]],
    ['a flood of tiny data', [open, ...Array.from({ length: 3_000 }, () => data(1))]],
    ['a window that is larger than all', [frame(1, frameType.window, Buffer.from([0xff, 0xff, 0xff, 0xff]))]],
    ['a window of another length', [frame(1, frameType.window, Buffer.from([0]))]],
    ['two ends', [open, frame(2, frameType.end), frame(2, frameType.end)]],
    ['data after the end', [open, frame(2, frameType.end), data(1)]],
    ['an end that says something', [open, frame(2, frameType.end, Buffer.from('x'))]],
  ])('ends the channel by %s', async (_what, parts) => {
    expect(await heard(...parts)).toBeInstanceOf(ChannelViolation);
  });

  it('can only end the channel, by random frames', async () => {
    const type = fc.integer({ min: 0, max: 6 });
    const frames = fc.array(
      fc.record({ id: fc.integer({ min: 0, max: 6 }), type, payload: fc.uint8Array({ maxLength: 40 }) }),
      { maxLength: 30 },
    );
    await fc.assert(
      fc.asyncProperty(frames, fc.uint8Array({ maxLength: 20 }), async (said, rest) => {
        const parts = said.map(({ id, type, payload }) => frame(id, type, Buffer.from(payload)));
        expect(await heard(...parts, Buffer.from(rest))).toBeInstanceOf(Error);
      }),
      { numRuns: 200 },
    );
  });

  it('that does not read is cut off before its answers fill the memory', async () => {
    const input = new PassThrough();
    const output = new PassThrough(); // is not read
    const { channel, ended } = channelOn(input, output, 'holder', () => false);
    const refused = Buffer.from('{"kind":"refused"}');
    for (let id = 2; !channel.hasEnded; id += 2) {
      if (!input.write(Buffer.concat(Array.from({ length: 1_000 }, (_, at) => frame(id + at * 2, 1, refused))))) {
        await Promise.race([once(input, 'drain'), ended]);
      }
      id += 1_998;
    }
    expect(await ended).toBeInstanceOf(ChannelViolation);
    expect(output.writableLength).toBeLessThan(10 * 1_048_576);
  });
});

describe('messages within a stream', () => {
  it('are read as an answer and then messages, wherever the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 5 }),
        fc.integer({ min: 1, max: 9 }),
        async (given, size) => {
          const stream = new PassThrough();
          const rest = Buffer.concat(
            given.map((bytes) => Buffer.from([messageKind.stdout, 0, 0, 0, bytes.length, ...bytes])),
          );
          const bytes = Buffer.concat([encodeMessage(messageKind.answer, { pid: 7 }), rest]);
          for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size));
          stream.end();
          expect(await readAnswer(stream)).toEqual({ pid: 7 });
          const decoder = new MessageDecoder();
          const seen: number[][] = [];
          for await (const chunk of stream)
            for (const { payload } of decoder.push(chunk as Buffer)) seen.push([...payload]);
          expect(seen).toEqual(given.map((part) => [...part]));
        },
      ),
      { numRuns: 50 },
    );
  });

  it.each([
    ['another kind first', Buffer.from([2, 0, 0, 0, 0])],
    ['an answer that is gigantic', Buffer.from([1, 0xff, 0, 0, 0])],
    ['an answer that is no JSON', Buffer.from([1, 0, 0, 0, 1, 0x7b])],
  ])('violate the protocol by %s', async (_what, bytes) => {
    const stream = new PassThrough();
    stream.end(bytes);
    await expect(readAnswer(stream)).rejects.toBeInstanceOf(ChannelViolation);
  });

  it('have no answer if the stream ends before it', async () => {
    const stream = new PassThrough();
    stream.end(Buffer.from([1, 0, 0]));
    expect(await readAnswer(stream)).toBeUndefined();
  });
});
