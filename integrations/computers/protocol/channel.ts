import type { Readable, Writable } from 'node:stream';
import { ChannelStream, StreamReset } from './channelStream.ts';
import {
  ChannelViolation,
  type Frame,
  FrameDecoder,
  type FrameType,
  frameHeader,
  frameType,
  maxReasonBytes,
} from './frames.ts';

interface ChannelOptions {
  /** The holder numbers its streams odd, the agent even. */
  side: 'holder' | 'agent';
  /**
   * Called when the other side opens a stream. Returns the function that takes the stream, or undefined to reset it.
   */
  onOpen: (request: unknown) => ((stream: ChannelStream) => void) | undefined;
  /** Called once when the channel has ended and every stream is destroyed. */
  onEnd: (reason: Error) => void;
  /** How many streams the other side may have open at once, and how long each opening request may be. */
  maxStreams: number;
  maxOpenBytes: number;
}

/** The channel ends when more than this waits for the other side to read it. */
const maxUnreadBytes = 8 * 1_048_576;

/**
 * Many streams over one connection. Each stream has its own window, so a stalled stream does not block others. The
 * other side is treated as hostile: its first invalid frame ends the channel.
 */
export class Channel {
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #options: ChannelOptions;
  readonly #decoder: FrameDecoder;
  readonly #streams = new Map<number, ChannelStream>();
  /** Streams that wait to send, in round-robin order. */
  readonly #waiting = new Set<ChannelStream>();
  #next: number;
  #lastOfOther = 0;
  #ofOther = 0;
  #isCongested = false;
  /** The output is corked for one tick, so that frames sent in one tick are written together. */
  #isCorked = false;
  #hasEnded = false;

  constructor(input: Readable, output: Writable, options: ChannelOptions) {
    this.#input = input;
    this.#output = output;
    this.#options = options;
    this.#decoder = new FrameDecoder(options);
    this.#next = options.side === 'holder' ? 1 : 2;
    input.on('data', (chunk: Buffer) => this.#hear(chunk));
    input.once('end', () => this.end(new Error('The channel has ended.')));
    for (const stream of [input, output]) {
      stream.on('error', (error) => this.end(error));
      stream.once('close', () => this.end(new Error('The channel was closed.')));
    }
    output.on('drain', () => this.#drain());
  }

  /** Opens a stream. On a channel that has ended, the stream is destroyed at once. */
  open(request: unknown): ChannelStream {
    const stream = new ChannelStream(this, this.#next);
    this.#next += 2;
    if (this.#hasEnded) stream.destroy(new StreamReset('The channel has ended.'));
    else {
      this.#streams.set(stream.streamId, stream);
      this.#send(stream.streamId, frameType.open, Buffer.from(JSON.stringify(request)));
    }
    return stream;
  }

  end(reason: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    this.#waiting.clear();
    for (const stream of streams) stream.takeReset(reason.message);
    this.#input.destroy();
    this.#output.destroy();
    this.#options.onEnd(reason);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  sendData(streamId: number, bytes: Uint8Array): void {
    this.#send(streamId, frameType.data, bytes);
  }

  sendWindow(streamId: number, bytes: number): void {
    const payload = Buffer.allocUnsafe(4);
    payload.writeUInt32BE(bytes);
    this.#send(streamId, frameType.window, payload);
  }

  sendEnd(streamId: number): void {
    this.#send(streamId, frameType.end);
  }

  sendReset(streamId: number, reason: string): void {
    this.#send(streamId, frameType.reset, Buffer.from(reason).subarray(0, maxReasonBytes));
  }

  /** Whether the connection takes more now. If not, the channel calls the stream's `sendNext` later. */
  mayISend(stream: ChannelStream): boolean {
    if (this.#isCongested) this.#waiting.add(stream);
    return !(this.#isCongested || this.#hasEnded);
  }

  forget(stream: ChannelStream): void {
    this.#waiting.delete(stream);
    if (this.#streams.delete(stream.streamId) && this.#isOfOther(stream.streamId)) this.#ofOther--;
  }

  #isOfOther(streamId: number): boolean {
    return streamId % 2 !== this.#next % 2;
  }

  #send(streamId: number, type: FrameType, payload?: Uint8Array): void {
    if (this.#hasEnded) return;
    if (this.#output.writableLength > maxUnreadBytes) {
      this.end(new ChannelViolation('The other side does not read.'));
      return;
    }
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#output.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        this.#output.uncork();
      });
    }
    let isFree = this.#output.write(frameHeader(streamId, type, payload?.length ?? 0));
    if (payload !== undefined && payload.length > 0) isFree = this.#output.write(payload);
    if (!isFree) this.#isCongested = true;
  }

  /** Sends one frame of each waiting stream in turn until the connection is congested again. */
  #drain(): void {
    this.#isCongested = false;
    while (this.#waiting.size > 0 && !this.#isCongested) {
      for (const stream of [...this.#waiting]) {
        this.#waiting.delete(stream);
        if (this.#isCongested) this.#waiting.add(stream);
        else if (stream.sendNext()) this.#waiting.add(stream);
      }
    }
  }

  #hear(chunk: Buffer): void {
    try {
      for (const frame of this.#decoder.push(chunk)) {
        if (this.#hasEnded) return;
        this.#take(frame);
      }
    } catch (error) {
      this.end(error as Error);
    }
  }

  #take({ streamId, type, payload, isFirst }: Frame): void {
    if (type === frameType.open) {
      this.#takeOpen(streamId, payload);
      return;
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      // A stream that has ended here may still be open on the other side. Its frames are ignored.
      const last = this.#isOfOther(streamId) ? this.#lastOfOther : this.#next - 2;
      if (streamId === 0 || streamId > last) throw new ChannelViolation('There is no such stream.');
    } else if (type === frameType.data) stream.takeData(payload, isFirst);
    else if (type === frameType.window) stream.takeWindow(payload.readUInt32BE());
    else if (type === frameType.end) stream.takeEnd();
    else stream.takeReset(payload.toString());
  }

  #takeOpen(streamId: number, payload: Buffer): void {
    if (!this.#isOfOther(streamId) || streamId <= this.#lastOfOther) {
      throw new ChannelViolation('A stream’s number is invalid.');
    }
    this.#lastOfOther = streamId;
    const request = parse(payload);
    const take = this.#ofOther < this.#options.maxStreams ? this.#options.onOpen(request) : undefined;
    if (take === undefined) {
      this.sendReset(streamId, 'This kind of stream is not served, or too many are open.');
      return;
    }
    const stream = new ChannelStream(this, streamId);
    this.#streams.set(streamId, stream);
    this.#ofOther++;
    take(stream);
  }
}

function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    throw new ChannelViolation('The request of a stream is not JSON.');
  }
}
