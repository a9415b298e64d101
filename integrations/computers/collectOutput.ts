import { type Exit, type Gap, isOutput, noteOf, positionAfter } from './processes/records.ts';
import type { OutputRecord } from './types.ts';

/** What a process has put out, as text. */
export interface CollectedOutput {
  /** A terminal’s output too. */
  stdout: string;
  stderr: string;
  /** Whether a part of either is left out, where the text says so. */
  truncated: boolean;
  /** How it ended; undefined when that has not been told. */
  exit: Exit | undefined;
  /** Where what comes next begins. */
  position: number;
}

/**
 * Reads output, and keeps the beginning and the end of each stream, of `maxBytes` together. `onRecord` sees every record
 * first.
 */
export async function collectOutput(
  records: AsyncIterable<OutputRecord>,
  { maxBytes, onRecord }: { maxBytes: number; onRecord?: (record: OutputRecord) => void },
): Promise<CollectedOutput> {
  const stdout = new Ends(maxBytes);
  const stderr = new Ends(maxBytes);
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

/** The beginning and the end of a stream, in memory that does not grow with it. */
class Ends {
  readonly #each: number;
  readonly #head: Buffer[] = [];
  #tail: Buffer[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  #leftOut = 0;

  constructor(maxBytes: number) {
    this.#each = Math.ceil(maxBytes / 2);
  }

  get isCut(): boolean {
    return this.#leftOut > 0;
  }

  push(bytes: Uint8Array): void {
    const room = this.#leftOut > 0 ? 0 : Math.max(0, this.#each - this.#headBytes);
    const first = Buffer.from(bytes.subarray(0, room));
    if (first.length > 0) this.#head.push(first);
    this.#headBytes += first.length;
    if (bytes.length <= room) return;
    const rest = Buffer.from(bytes.subarray(room));
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    while (this.#tailBytes > this.#each) this.#shorten();
  }

  /** What is no longer kept anywhere lies between what came before and what comes. */
  leaveOut(bytes: number): void {
    this.#leftOut += bytes + this.#tailBytes;
    this.#tail = [];
    this.#tailBytes = 0;
  }

  text(): string {
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    if (!this.isCut) return Buffer.concat([head, tail]).toString('utf8');
    return `${head.toString('utf8')}\n[${this.#leftOut} bytes are left out here]\n${tail.toString('utf8')}`;
  }

  #shorten(): void {
    const [first] = this.#tail;
    if (first === undefined) return;
    const over = Math.min(this.#tailBytes - this.#each, first.length);
    if (over === first.length) this.#tail.shift();
    else this.#tail[0] = first.subarray(over);
    this.#tailBytes -= over;
    this.#leftOut += over;
  }
}
