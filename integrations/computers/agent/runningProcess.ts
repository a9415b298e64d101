import { Socket } from 'node:net';
import type { Duplex, Writable } from 'node:stream';
import { encodeMessage, type MessageKind, maxMessageBytes, messageHeader, messageKind } from '../channel/messages.ts';
import type { LeaderExit } from './requests.ts';

/** What is read after the leader’s end, at most, once the time is over: two pipes hold no more of what it has said. */
const maxLateBytes = 2 * 65_536;
const lateMs = 200;

/**
 * Tells a process’s output and its end over its stream. The end is the leader’s: what it has started in the background
 * may hold its output open, and what that says later is read and dropped, so that it does not fail for it.
 */
export class Outputs {
  readonly #stream: Duplex;
  readonly #open = new Set<Socket>();
  #exit: LeaderExit | undefined;
  #isOver = false;
  #isLate = false;
  #lateBytes = 0;

  constructor(stream: Duplex) {
    this.#stream = stream;
    stream.on('drain', () => {
      for (const source of this.#open) source.resume();
      if (this.#isLate) this.#endSoon();
    });
  }

  add(source: Socket, kind: MessageKind): void {
    this.#open.add(source);
    source.on('data', (chunk: Buffer) => this.#tell(kind, chunk));
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

  #tell(kind: MessageKind, chunk: Buffer): void {
    if (this.#isOver) return;
    let isFree = true;
    for (let at = 0; at < chunk.length; at += maxMessageBytes) {
      const payload = chunk.subarray(at, at + maxMessageBytes);
      this.#stream.write(messageHeader(kind, payload.length));
      isFree = this.#stream.write(payload);
    }
    if (this.#isLate) {
      this.#lateBytes += chunk.length;
      this.#endIfOver();
    }
    if (!isFree && !this.#isOver) for (const source of this.#open) source.pause();
  }

  #endIfOver(): void {
    if (this.#isOver || this.#exit === undefined) return;
    const hasMore = this.#isLate ? this.#stream.writableNeedDrain && this.#lateBytes < maxLateBytes : true;
    if (this.#open.size > 0 && hasMore) return;
    this.#isOver = true;
    this.#stream.end(encodeMessage(messageKind.exit, this.#exit));
    for (const source of this.#open) source.resume();
  }
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
