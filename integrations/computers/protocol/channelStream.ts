import { Duplex } from 'node:stream';
import type { Channel } from './channel.ts';
import { ChannelViolation, maxDataBytes } from './frames.ts';

/** How many bytes one side may send on a stream before the other has read them. */
export const windowBytes = 131_072;
/** The window cost of a data frame besides its bytes, so that the window also bounds a flood of tiny frames. */
const frameCost = 64;

/** The other side has reset the stream, or the channel has ended. */
export class StreamReset extends Error {
  override readonly name = 'StreamReset';
}

/** One stream of a channel. Each side ends its own half; destroying the stream ends both. */
export class ChannelStream extends Duplex {
  readonly streamId: number;
  readonly #channel: Channel;
  #credit = windowBytes;
  /** `#owed`: bytes that the other side may still send. `#taken`: bytes received but not granted again yet. */
  #owed = windowBytes;
  #taken = 0;
  #waiting: { bytes: Buffer; done: (error?: Error | null) => void } | undefined;
  #hasEnded = false;
  #otherHasEnded = false;
  #isReset = false;

  constructor(channel: Channel, streamId: number) {
    super({ allowHalfOpen: true, readableHighWaterMark: 65_536, writableHighWaterMark: 65_536 });
    this.#channel = channel;
    this.streamId = streamId;
    // Users see a reset as the end of the stream. Without this listener an unhandled 'error' event would end the
    // process.
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
    // Node calls this when its own buffer has room: the consumer has read everything else.
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

  /** Sends one frame of the waiting bytes. Returns false if nothing waits or the stream cannot send now. */
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

  /** Throws `ChannelViolation` if the other side sends more than its window allows. */
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

/** Passes everything in both directions. When one side ends, the other is ended; when one is cut, the other is cut. */
export function join(a: Duplex, b: Duplex): void {
  for (const [one, other] of [
    [a, b],
    [b, a],
  ] as const) {
    one.on('error', () => other.destroy());
    one.once('close', () => {
      if (!other.writableEnded || !one.readableEnded) other.destroy();
    });
    one.pipe(other);
  }
}
