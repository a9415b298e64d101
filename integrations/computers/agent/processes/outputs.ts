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

/** What is read after the leader’s end, at most, once the time is over: two pipes hold no more of what it has said. */
const maxLateBytes = 2 * 65_536;
const lateMs = 200;
/** What comes within this after something was told is told together. The first after a quiet moment is told at once. */
const gatherMs = 4;

/**
 * Tells a process’s output and its end over its stream. The end is the leader’s: what it has started in the background
 * may hold its output open, and what that says later is read and dropped, so that it does not fail for it.
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
    source.on('error', () => undefined); // of a terminal, EIO is the end
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

  /** Not before what can be read now has been. */
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

  /** Tells what has been gathered. */
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

/** Passes a stream’s bytes on to a process’s standard input, which it may close before they end. */
export function feed(stream: Duplex, input: Writable | undefined): void {
  if (input === undefined) {
    stream.resume();
    return;
  }
  input.on('error', () => stream.resume());
  stream.pipe(input);
}

/** A terminal is never closed for writing: who types says that there is no more by Ctrl-D. */
export function feedTerminal(stream: Duplex, terminal: Writable): void {
  terminal.on('error', () => stream.resume());
  stream.pipe(terminal, { end: false });
  stream.once('end', () => terminal.write('\x04'));
}

export function outputSocket(fd: number): Socket {
  return new Socket({ fd, readable: true, writable: false });
}
