/**
 * Frame types of a connection that carries many streams. A frame has the stream's number (4 bytes), the type (1 byte),
 * the payload's length (4 bytes) and the payload. Integers are big-endian. `open`: JSON that says what the stream is
 * for. `data`: bytes of the stream. `end`: this side sends no more. `reset`: ends the stream for both sides, with a
 * reason. `window`: how many more bytes the receiver may send (4 bytes).
 */
export const frameType = { open: 1, data: 2, end: 3, reset: 4, window: 5 } as const;
export type FrameType = (typeof frameType)[keyof typeof frameType];

const frameHeaderBytes = 9;
export const maxDataBytes = 32_768;
export const maxReasonBytes = 1_024;

/** The other side broke the protocol. The channel reads nothing more from it. */
export class ChannelViolation extends Error {
  override readonly name = 'ChannelViolation';
}

export function frameHeader(streamId: number, type: FrameType, length: number): Buffer {
  const header = Buffer.allocUnsafe(frameHeaderBytes);
  header.writeUInt32BE(streamId, 0);
  header[4] = type;
  header.writeUInt32BE(length, 5);
  return header;
}

/** A frame that was received, or a piece of a `data` frame. */
export interface Frame {
  streamId: number;
  type: FrameType;
  payload: Buffer;
  /** Whether a `data` frame begins with this piece. */
  isFirst: boolean;
}

/** Decodes frames. Buffers no `data`, and at most one frame of another type. */
export class FrameDecoder {
  readonly #maxOpenBytes: number;
  readonly #header: Buffer = Buffer.alloc(frameHeaderBytes);
  #headerLength = 0;
  /** Payload bytes of the current frame that are still to come. */
  #missing = 0;
  #isFirst = true;
  #parts: Buffer[] = [];

  constructor({ maxOpenBytes }: { maxOpenBytes: number }) {
    this.#maxOpenBytes = maxOpenBytes;
  }

  /** Yields the frames, and pieces of `data` frames, in this chunk. Throws `ChannelViolation`. */
  *push(chunk: Buffer): Generator<Frame> {
    for (let at = 0; at < chunk.length; ) {
      if (this.#headerLength < frameHeaderBytes) {
        const count = Math.min(frameHeaderBytes - this.#headerLength, chunk.length - at);
        chunk.copy(this.#header, this.#headerLength, at, at + count);
        this.#headerLength += count;
        at += count;
        if (this.#headerLength < frameHeaderBytes) return;
        this.#begin();
      }
      const piece = chunk.subarray(at, at + this.#missing);
      at += piece.length;
      this.#missing -= piece.length;
      const frame = this.#take(piece, chunk.length);
      if (this.#missing === 0) this.#headerLength = 0;
      if (frame !== undefined) yield frame;
    }
  }

  #begin(): void {
    const length = this.#header.readUInt32BE(5);
    if (!this.#isLengthValid(this.#header[4], length)) throw new ChannelViolation('A frame is invalid.');
    this.#missing = length;
    this.#isFirst = true;
    this.#parts = [];
  }

  #isLengthValid(type: number | undefined, length: number): boolean {
    switch (type) {
      case frameType.open:
        return length <= this.#maxOpenBytes;
      case frameType.data:
        return length > 0 && length <= maxDataBytes;
      case frameType.end:
        return length === 0;
      case frameType.reset:
        return length <= maxReasonBytes;
      case frameType.window:
        return length === 4;
      default:
        return false;
    }
  }

  #take(piece: Buffer, chunkLength: number): Frame | undefined {
    const type = this.#header[4] as FrameType;
    const streamId = this.#header.readUInt32BE(0);
    if (type === frameType.data) {
      if (piece.length === 0) return undefined;
      const isFirst = this.#isFirst;
      this.#isFirst = false;
      // Copy a small piece, so that it does not keep the whole chunk in memory while it waits.
      const payload = piece.length * 2 < chunkLength ? Buffer.from(piece) : piece;
      return { streamId, type, payload, isFirst };
    }
    if (piece.length > 0) this.#parts.push(piece);
    if (this.#missing > 0) return undefined;
    const payload = Buffer.concat(this.#parts);
    this.#parts = [];
    return { streamId, type, payload, isFirst: true };
  }
}
