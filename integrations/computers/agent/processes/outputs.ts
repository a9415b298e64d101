import { Socket } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import type { LeaderExit } from '../../protocol/agentRequests.ts';
import { joinPieces, type Piece } from '../../protocol/joinPieces.ts';
import {
  encodeMessage,
  type MessageKind,
  maxMessageBytes,
  messageHeader,
  messageKind,
} from '../../protocol/messages.ts';

/** How many bytes are still read after `lateMs`: two full pipes hold no more of the leader's output. */
const maxLateBytes = 2 * 65_536;
const lateMs = 200;
/** Output that follows within this time is sent together. The first output after a quiet moment is sent at once. */
const gatherMs = 4;

/**
 * Sends a process's output and exit over its stream. The exit is the leader's. A background child may hold the output
 * open: what it writes later is read and dropped, so that its writes do not fail.
 */
export class Outputs {
  readonly #stream: Duplex;
  readonly #open = new Set<Readable>();
  #exit: LeaderExit | undefined;
  #isOver = false;
  #isLate = false;
  #lateBytes = 0;
  #gathered: Piece<MessageKind>[] = [];
  #gatheredBytes = 0;
  #gathering: NodeJS.Timeout | undefined;
  #toldAt = 0;

  constructor(stream: Duplex) {
    this.#stream = stream;
    stream.on('drain', () => {
      for (const source of this.#open) source.resume();
      if (this.#isLate) this.#endSoon();
    });
  }

  add(source: Readable, kind: MessageKind): void {
    this.#open.add(source);
    source.on('data', (chunk: Buffer) => this.#hear(kind, chunk));
    source.on('error', () => undefined); // a terminal ends with EIO
    source.once('close', () => {
      this.#open.delete(source);
      this.#endIfOver();
    });
  }

  leaderEnded(exit: LeaderExit): void {
    this.#exit = exit;
    this.#endIfOver();
    setTimeout(() => {
      this.#isLate = true;
      this.#endSoon();
    }, lateMs);
  }

  /** Ends after the event loop has delivered the output that is readable now. */
  #endSoon(): void {
    setImmediate(() => setImmediate(() => this.#endIfOver()));
  }

  #hear(kind: MessageKind, payload: Buffer): void {
    if (this.#isOver) return;
    this.#gathered.push({ kind, payload });
    this.#gatheredBytes += payload.length;
    const waitMs = this.#toldAt + gatherMs - performance.now();
    if (waitMs <= 0 || this.#gatheredBytes >= maxMessageBytes) this.#tell();
    else this.#gathering ??= setTimeout(() => this.#tell(), waitMs);
    if (this.#isLate) {
      this.#lateBytes += payload.length;
      this.#endIfOver();
    }
  }

  /** Sends the gathered output. */
  #tell(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    if (this.#gatheredBytes === 0) return;
    const parts = joinPieces(this.#gathered).flatMap(({ kind, payload }) => messagesOf(kind, payload));
    this.#gathered = [];
    this.#gatheredBytes = 0;
    this.#toldAt = performance.now();
    const isFree = this.#stream.write(Buffer.concat(parts));
    if (!isFree && !this.#isOver) for (const source of this.#open) source.pause();
  }

  #endIfOver(): void {
    if (this.#isOver || this.#exit === undefined) return;
    const hasMore = this.#isLate ? this.#stream.writableNeedDrain && this.#lateBytes < maxLateBytes : true;
    if (this.#open.size > 0 && hasMore) return;
    this.#tell();
    this.#isOver = true;
    this.#stream.end(encodeMessage(messageKind.exit, this.#exit));
    for (const source of this.#open) source.resume();
  }
}

function messagesOf(kind: MessageKind, payload: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < payload.length; at += maxMessageBytes) {
    const part = payload.subarray(at, at + maxMessageBytes);
    parts.push(messageHeader(kind, part.length), part);
  }
  return parts;
}

/** Passes the stream's bytes to the process's standard input. The process may close its input earlier. */
export function feed(stream: Duplex, input: Writable | undefined): void {
  if (input === undefined) {
    stream.resume();
    return;
  }
  input.on('error', () => stream.resume());
  stream.pipe(input);
}

/** A terminal's input is never closed. Ctrl-D marks its end. */
export function feedTerminal(stream: Duplex, terminal: Writable): void {
  terminal.on('error', () => stream.resume());
  stream.pipe(terminal, { end: false });
  stream.once('end', () => terminal.write('\x04'));
}

export function outputSocket(fd: number): Socket {
  return new Socket({ fd, readable: true, writable: false });
}
