import { Duplex } from 'node:stream';
import { ChannelViolation, maxDataBytes } from './frames.ts';

/** How much one side may send on a stream before the other has taken it. */
export const windowBytes = 131_072;
/** What a frame of data costs beyond its bytes, so that a flood of tiny ones is bounded too. */
const frameCost = 64;

/** What a stream asks of its channel. */
export interface StreamChannel {
  sendData(streamId: number, bytes: Uint8Array): void;
  sendWindow(streamId: number, bytes: number): void;
  sendEnd(streamId: number): void;
  sendReset(streamId: number, reason: string): void;
  /** Whether the connection takes more now; where it does not, the stream is called when it does. */
  mayISend(stream: ChannelStream): boolean;
  forget(stream: ChannelStream): void;
}

/** The other side, or the end of the channel, has ended the stream. */
export class StreamReset extends Error {
  override readonly name = 'StreamReset';
}

/** One of a channel’s streams. Each side ends its own half; to destroy it ends both. */
export class ChannelStream extends Duplex {
  readonly streamId: number;
  readonly #channel: StreamChannel;
  #credit = windowBytes;
  /** What the other side may still send, and what of the rest has been taken but not granted again. */
  #owed = windowBytes;
  #taken = 0;
  #waiting: { bytes: Buffer; done: (error?: Error | null) => void } | undefined;
  #hasEnded = false;
  #otherHasEnded = false;
  #isReset = false;

  constructor(channel: StreamChannel, streamId: number) {
    super({ allowHalfOpen: true, readableHighWaterMark: 65_536, writableHighWaterMark: 65_536 });
    this.#channel = channel;
    this.streamId = streamId;
    // Whoever uses it hears of a reset as of any end; nobody who does not listen is to be ended by one.
    this.on('error', () => undefined);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#waiting = { bytes: chunk, done };
    while (this.sendNext());
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#hasEnded = true;
    if (!this.#isReset) this.#channel.sendEnd(this.streamId);
    this.#forgetIfOver();
    done();
  }

  override _read(): void {
    // All that has been taken so far has left, but for what the stream itself buffers.
    if (this.#taken < windowBytes / 4 || this.#otherHasEnded || this.#isReset) return;
    this.#owed += this.#taken;
    this.#channel.sendWindow(this.streamId, this.#taken);
    this.#taken = 0;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!(this.#isReset || (this.#hasEnded && this.#otherHasEnded))) {
      this.#isReset = true;
      this.#channel.sendReset(this.streamId, error === null ? '' : error.message);
    }
    this.#channel.forget(this);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.done(error ?? new StreamReset('The stream was destroyed.'));
    done(error);
  }

  /** Sends one frame of what waits; false where nothing waits, or it must wait on. */
  sendNext(): boolean {
    const waiting = this.#waiting;
    if (waiting === undefined || this.#credit <= frameCost || !this.#channel.mayISend(this)) return false;
    const count = Math.min(waiting.bytes.length, this.#credit - frameCost, maxDataBytes);
    if (count > 0) {
      this.#credit -= count + frameCost;
      this.#channel.sendData(this.streamId, waiting.bytes.subarray(0, count));
    }
    waiting.bytes = waiting.bytes.subarray(count);
    if (waiting.bytes.length > 0) return true;
    this.#waiting = undefined;
    waiting.done();
    return false;
  }

  /** Data has come. Throws `ChannelViolation` where it is more than was allowed. */
  takeData(bytes: Buffer, isFirst: boolean): void {
    const cost = bytes.length + (isFirst ? frameCost : 0);
    if (this.#otherHasEnded || cost > this.#owed) {
      throw new ChannelViolation('More was sent on a stream than is allowed.');
    }
    this.#owed -= cost;
    this.#taken += cost;
    this.push(bytes);
  }

  takeWindow(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > windowBytes) throw new ChannelViolation('A window is larger than is allowed.');
    while (this.sendNext());
  }

  takeEnd(): void {
    if (this.#otherHasEnded) throw new ChannelViolation('A stream has ended twice.');
    this.#otherHasEnded = true;
    this.push(null);
    this.#forgetIfOver();
  }

  takeReset(reason: string): void {
    this.#isReset = true;
    this.destroy(new StreamReset(reason === '' ? 'The other side has ended the stream.' : reason));
  }

  #forgetIfOver(): void {
    if (this.#hasEnded && this.#otherHasEnded) this.#channel.forget(this);
  }
}
