import type { OutputKind, OutputRecord, ProcessInfo, ProcessState } from '../types.ts';

/**
 * The format of a process's output, on disk and over HTTP: one record after the other, each with a kind (1 byte), the
 * position (8 bytes), the payload's length (4 bytes) and the payload. Integers are big-endian.
 */
export const maxPayloadBytes = 65_536;
export const recordHeaderBytes = 13;

const codeOf: Record<OutputKind, number> = { stdout: 1, stderr: 2, pty: 3, resize: 4, gap: 5, exit: 6 };
const kindOf = new Map(Object.entries(codeOf).map(([kind, code]) => [code, kind as OutputKind]));

/** The payload of `gap`: this much output, from its position on, is not kept, because the log or its disk was full. */
export interface Gap {
  droppedBytes: number;
}

/** The payload of `exit`. `lost`: the end was not observed. */
export interface Exit extends Pick<ProcessInfo, 'exitCode' | 'signal' | 'killedBy'> {
  state: Exclude<ProcessState, 'running'>;
}

export interface Size {
  cols: number;
  rows: number;
}

/** The largest terminal. The contract says the same. */
export const largestSize: Size = { cols: 1_000, rows: 500 };

export class InvalidRecord extends Error {
  override readonly name = 'InvalidRecord';
}

export function isOutput(kind: OutputKind): kind is 'stdout' | 'stderr' | 'pty' {
  return codeOf[kind] <= 3;
}

/** A record about the output: `resize`, `gap` or `exit`. */
export function noteRecord(
  ...[kind, position, value]: ['gap', number, Gap] | ['exit', number, Exit] | ['resize', number, Size]
): OutputRecord {
  return { kind, position, payload: Buffer.from(JSON.stringify(value)) };
}

/** The payload of a `resize`, `gap` or `exit` record. */
export function noteOf<T extends Gap | Exit | Size>({ payload }: OutputRecord): T {
  return JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString()) as T;
}

/** The position of the next record. */
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

/** A record's kind, position and length. Undefined if `bytes` has less than a header at `at`. */
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

/** A record that only says that the sender is alive. Decoders skip it. */
export const heartbeat = Buffer.alloc(recordHeaderBytes);

/** Decodes records from chunks of any size. Buffers less than one record. */
export class RecordDecoder {
  #rest: Buffer = Buffer.alloc(0);

  /** Yields the records that this chunk completes. Throws `InvalidRecord`. */
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
      // A copy: the rest must not keep the whole chunk in memory.
      this.#rest = Buffer.from(bytes.subarray(at));
    }
  }

  /** Whether an incomplete record is buffered. */
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
