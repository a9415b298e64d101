import type { Readable } from 'node:stream';
import type { MessageMemory, MessageRoom } from './messageMemory.ts';

/** A message that is no longer needs no room: there are few connections, and each has one at a time. */
const smallBytes = 262_144;

/** What can be kept from reading on. */
export interface Source {
  pause(): void;
  resume(): void;
}

/** Has a source wait while anybody has a reason for it. */
export class Gate {
  readonly #source: Source;
  readonly #reasons = new Set<string>();

  constructor(source: Source) {
    this.#source = source;
  }

  close(reason: string): void {
    this.#reasons.add(reason);
    this.#source.pause();
  }

  open(reason: string): void {
    if (this.#reasons.delete(reason) && this.#reasons.size === 0) this.#source.resume();
  }
}

interface Options {
  memory: MessageMemory;
  owner: string;
  /** As long as one of its messages may be. */
  maxMessageBytes: number;
  gate: Gate;
  signal: AbortSignal;
  onSlow: () => void;
}

/**
 * The messages that arrive on a stream for a WebSocket, which puts them together in memory: of a large one, no more is
 * read than its beginning before there is room for it.
 */
export class Arrivals {
  readonly #options: Options;
  #bytes = 0;
  /** Of the message that is arriving. */
  #room: Promise<MessageRoom | undefined> | undefined;

  constructor(stream: Readable, options: Options) {
    this.#options = options;
    const count = (chunk: Buffer) => this.#count(chunk.length);
    stream.prependListener('data', count);
    options.signal.addEventListener('abort', () => {
      stream.off('data', count);
      void this.#leave();
    });
  }

  /** One has arrived: what it takes is its room, until that is disposed of. */
  async arrived(bytes: number): Promise<Disposable | undefined> {
    const room = this.#room;
    this.#bytes = 0;
    this.#room = undefined;
    const given = await room;
    given?.shrinkTo(bytes);
    return given;
  }

  #count(bytes: number): void {
    const { memory, owner, maxMessageBytes, gate, signal, onSlow } = this.#options;
    this.#bytes += bytes;
    if (this.#bytes <= smallBytes || this.#room !== undefined) return;
    gate.close('memory');
    this.#room = memory.take(owner, maxMessageBytes, { signal, onSlow });
    void this.#room.then(() => gate.open('memory'));
  }

  /** Of what has arrived in part, nothing comes. */
  async #leave(): Promise<void> {
    (await this.arrived(0))?.[Symbol.dispose]();
  }
}
