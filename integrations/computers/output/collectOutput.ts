import { type Exit, type Gap, isOutput, noteOf, positionAfter } from '../processes/records.ts';
import type { OutputRecord } from '../types.ts';

/** The output of a process as text. */
interface CollectedOutput {
  /** Includes a terminal's output. */
  stdout: string;
  stderr: string;
  /** Whether a part of either is left out. The text says where. */
  truncated: boolean;
  /** How the process ended. Undefined if the records do not tell. */
  exit: Exit | undefined;
  /** The position of the next output. */
  position: number;
}

/**
 * Reads output, and keeps the beginning and the end of each stream, `maxBytes` of each stream at most. Memory use
 * depends neither on the length of the output nor on how it is cut into records. `onRecord` gets every record first.
 */
export async function collectOutput(
  records: AsyncIterable<OutputRecord>,
  { maxBytes, onRecord }: { maxBytes: number; onRecord?: (record: OutputRecord) => void },
): Promise<CollectedOutput> {
  const stdout = new StreamEnds(maxBytes);
  const stderr = new StreamEnds(maxBytes);
  let exit: Exit | undefined;
  let position = 0;
  for await (const record of records) {
    onRecord?.(record);
    position = positionAfter(record);
    if (isOutput(record.kind)) (record.kind === 'stderr' ? stderr : stdout).push(record.payload);
    else if (record.kind === 'gap') stdout.leaveOut(noteOf<Gap>(record).droppedBytes);
    else if (record.kind === 'exit') exit = noteOf<Exit>(record);
  }
  const truncated = stdout.isCut || stderr.isCut;
  return { stdout: stdout.text(), stderr: stderr.text(), truncated, exit, position };
}

const firstBytes = 4_096;

/** The beginning and the end of a stream, each in a buffer of limited size. */
class StreamEnds {
  readonly #head: Tail;
  readonly #tail: Tail;
  #leftOut = 0;

  /** Keeps half of `maxBytes` from each end. */
  constructor(maxBytes: number) {
    const each = Math.ceil(maxBytes / 2);
    this.#head = new Tail(each);
    this.#tail = new Tail(each);
  }

  get isCut(): boolean {
    return this.#leftOut > 0;
  }

  push(bytes: Uint8Array): void {
    const room = this.isCut ? 0 : this.#head.room;
    this.#head.push(bytes.subarray(0, room));
    this.#leftOut += this.#tail.push(bytes.subarray(room));
  }

  /** Notes bytes that are missing between earlier and later output. */
  leaveOut(bytes: number): void {
    this.#leftOut += bytes + this.#tail.clear();
  }

  text(): string {
    const head = this.#head.bytes();
    const tail = this.#tail.bytes();
    if (!this.isCut) return Buffer.concat([head, tail]).toString('utf8');
    return `${head.toString('utf8')}\n[${this.#leftOut} bytes are left out here]\n${tail.toString('utf8')}`;
  }
}

/** Keeps the last bytes of its input, in a ring that grows up to its limit. */
class Tail {
  readonly #maxBytes: number;
  #ring: Buffer = Buffer.alloc(0);
  #start = 0;
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get room(): number {
    return this.#maxBytes - this.#length;
  }

  /** Returns how many bytes fell out at the start. */
  push(bytes: Uint8Array): number {
    const kept = bytes.length > this.#maxBytes ? bytes.subarray(bytes.length - this.#maxBytes) : bytes;
    const fallen = Math.max(0, kept.length - this.room);
    this.#start = this.#ring.length === 0 ? 0 : (this.#start + fallen) % this.#ring.length;
    this.#length -= fallen;
    this.#growTo(this.#length + kept.length);
    if (kept.length > 0) this.#write(kept);
    return fallen + bytes.length - kept.length;
  }

  /** Returns how many bytes there were. */
  clear(): number {
    const length = this.#length;
    this.#start = 0;
    this.#length = 0;
    return length;
  }

  bytes(): Buffer {
    const end = this.#start + this.#length;
    const first = this.#ring.subarray(this.#start, end);
    return end <= this.#ring.length ? first : Buffer.concat([first, this.#ring.subarray(0, end - this.#ring.length)]);
  }

  /** The ring never wraps before it has its full size. */
  #growTo(length: number): void {
    if (length <= this.#ring.length) return;
    const size = Math.min(this.#maxBytes, Math.max(length, 2 * this.#ring.length, firstBytes));
    const grown = Buffer.allocUnsafe(size);
    this.bytes().copy(grown);
    this.#ring = grown;
    this.#start = 0;
  }

  #write(bytes: Uint8Array): void {
    const at = (this.#start + this.#length) % this.#ring.length;
    const first = bytes.subarray(0, this.#ring.length - at);
    this.#ring.set(first, at);
    this.#ring.set(bytes.subarray(first.length), 0);
    this.#length += bytes.length;
  }
}
