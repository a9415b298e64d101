import type { Readable } from 'node:stream';
import { ChannelViolation } from './frames.ts';

/**
 * Messages within a stream: a kind (1 byte), a length (4 bytes) and the payload. The agent begins each answer with an
 * `answer` message in JSON. For a file, its plain bytes follow; for a process, more messages.
 */
export const messageKind = { answer: 1, stdout: 2, stderr: 3, pty: 4, exit: 5 } as const;
export type MessageKind = (typeof messageKind)[keyof typeof messageKind];

export const maxMessageBytes = 32_768;
/** An answer may contain a page of a folder. */
const maxAnswerBytes = 4 * 1_048_576;
const headerBytes = 5;

export interface Message {
  kind: MessageKind;
  payload: Buffer;
}

export function messageHeader(kind: MessageKind, length: number): Buffer {
  const header = Buffer.allocUnsafe(headerBytes);
  header[0] = kind;
  header.writeUInt32BE(length, 1);
  return header;
}

export function encodeMessage(kind: MessageKind, value: unknown): Buffer {
  const payload = Buffer.from(JSON.stringify(value));
  return Buffer.concat([messageHeader(kind, payload.length), payload]);
}

/**
 * Reads the answer at the start of a stream. The rest stays in the stream. Returns undefined if the stream ends first.
 * Throws `ChannelViolation`.
 */
export async function readAnswer(stream: Readable): Promise<unknown> {
  let bytes: Buffer = Buffer.alloc(0);
  for (;;) {
    const chunk = stream.read() as Buffer | null;
    if (chunk === null) {
      if (stream.readableEnded || stream.destroyed) return undefined;
      await readable(stream);
      continue;
    }
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    if (bytes.length < headerBytes) continue;
    const length = bytes.readUInt32BE(1);
    if (bytes[0] !== messageKind.answer || length > maxAnswerBytes) throw new ChannelViolation('An answer is invalid.');
    const end = headerBytes + length;
    if (bytes.length < end) continue;
    if (bytes.length > end) stream.unshift(bytes.subarray(end));
    return parse(bytes.subarray(headerBytes, end));
  }
}

function readable(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const event of events) stream.off(event, done);
      resolve();
    };
    const events = ['readable', 'end', 'close', 'error'];
    for (const event of events) stream.on(event, done);
  });
}

/** Decodes a process's messages from chunks of any size. Buffers less than one message. */
export class MessageDecoder {
  #rest: Buffer = Buffer.alloc(0);

  /** Throws `ChannelViolation`. */
  *push(chunk: Buffer): Generator<Message> {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= headerBytes) {
      const kind = bytes[at] as MessageKind;
      const length = bytes.readUInt32BE(at + 1);
      if (kind < messageKind.stdout || kind > messageKind.exit || length > maxMessageBytes) {
        throw new ChannelViolation('A message is invalid.');
      }
      const end = at + headerBytes + length;
      if (bytes.length < end) break;
      yield { kind, payload: bytes.subarray(at + headerBytes, end) };
      at = end;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
  }
}

export function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    throw new ChannelViolation('A message is not JSON.');
  }
}
