import type { OutputKind, OutputRecord, ProcessState } from '../types.ts';

/**
 * How a process's output is written, on disk and over HTTP: one record after the other, each of a kind (1 byte), the
 * position (8 bytes), the payload's length (4 bytes) and the payload. Integers are big-endian.
 */
export const maxPayloadBytes = 65_536;
export const recordHeaderBytes = 13;

const codeOf: Record<OutputKind, number> = { stdout: 1, stderr: 2, pty: 3, resize: 4, gap: 5, exit: 6 };
const kindOf = new Map(Object.entries(codeOf).map(([kind, code]) => [code, kind as OutputKind]));

/** What a `gap` says: this much output, from its position on, is not kept: the log is full, or its disk was. */
export interface Gap {
  droppedBytes: number;
}

/** What an `exit` says. `lost`: nobody saw the end. */
export interface Exit {
  state: Exclude<ProcessState, 'running'>;
  exitCode: number | null;
  signal: string | null;
  killedBy: 'timeout' | 'memory' | 'stop' | null;
}

export interface Size {
  cols: number;
  rows: number;
}

export class InvalidRecord extends Error {
  override readonly name = 'InvalidRecord';
}

export function isOutput(kind: OutputKind): kind is 'stdout' | 'stderr' | 'pty' {
  return codeOf[kind] <= 3;
}

/** A record that says something about the output: `resize`, `gap` or `exit`. */
export function noteRecord(
  ...[kind, position, value]: ['gap', number, Gap] | ['exit', number, Exit] | ['resize', number, Size]
): OutputRecord {
  return { kind, position, payload: Buffer.from(JSON.stringify(value)) };
}

/** What a `resize`, `gap` or `exit` record says. */
export function noteOf<T extends Gap | Exit | Size>({ payload }: OutputRecord): T {
  return JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString()) as T;
}

/** Where the next record’s output begins. */
export function positionAfter(record: OutputRecord): number {
  if (isOutput(record.kind)) return record.position + record.payload.length;
  return record.position + (record.kind === 'gap' ? noteOf<Gap>(record).droppedBytes : 0);
}

export function encodeRecord({ kind, position, payload }: OutputRecord): Buffer {
  const bytes = Buffer.allocUnsafe(recordHeaderBytes + payload.length);
  bytes[0] = codeOf[kind];
  bytes.writeUIntBE(0, 1, 2);
  bytes.writeUIntBE(position, 3, 6);
  bytes.writeUInt32BE(payload.length, 9);
  bytes.set(payload, recordHeaderBytes);
  return bytes;
}

/** A record’s kind, position and length; undefined where `bytes` has less than a header of it at `at`. */
export function headerAt(
  bytes: Buffer,
  at: number,
): { kind: OutputKind; position: number; length: number } | undefined {
  if (bytes.length - at < recordHeaderBytes) return undefined;
  const kind = kindOf.get(bytes[at] as number);
  const length = bytes.readUInt32BE(at + 9);
  if (kind === undefined || bytes.readUIntBE(at + 1, 2) !== 0 || length > maxPayloadBytes) {
    throw new InvalidRecord('A record of a process’s output is invalid.');
  }
  return { kind, position: bytes.readUIntBE(at + 3, 6), length };
}

/** A record without content that says only that the sender is alive; a decoder passes it over. */
export const heartbeat = Buffer.alloc(recordHeaderBytes);

/** Puts records together from chunks that are cut anywhere. It keeps less than one record. */
export class RecordDecoder {
  #rest: Buffer = Buffer.alloc(0);

  /** The records that this chunk completes. Throws `InvalidRecord`. */
  *push(chunk: Uint8Array): Generator<OutputRecord> {
    const bytes = this.#rest.length === 0 ? asBuffer(chunk) : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    try {
      while (bytes.length - at >= recordHeaderBytes) {
        if (bytes[at] === 0) {
          at = afterHeartbeat(bytes, at);
          continue;
        }
        const header = headerAt(bytes, at);
        if (header === undefined || bytes.length - at < recordHeaderBytes + header.length) break;
        const start = at + recordHeaderBytes;
        at = start + header.length;
        yield { kind: header.kind, position: header.position, payload: bytes.subarray(start, at) };
      }
    } finally {
      // A copy: what is kept must not keep the whole chunk.
      this.#rest = Buffer.from(bytes.subarray(at));
    }
  }

  /** Whether a record has begun that is not complete. */
  get isWithinRecord(): boolean {
    return this.#rest.length > 0;
  }
}

function afterHeartbeat(bytes: Buffer, at: number): number {
  const end = at + recordHeaderBytes;
  if (bytes.subarray(at, end).some((byte) => byte !== 0)) {
    throw new InvalidRecord('A record of a process’s output is invalid.');
  }
  return end;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
