import type { Readable } from 'node:stream';
import type { MessageMemory, MessageRoom } from './messageMemory.ts';

/** Messages up to this size need no room: there are few connections, and each has one message at a time. */
const smallBytes = 262_144;

/** A source that can stop reading. */
export interface Source {
  pause(): void;
  resume(): void;
}

/** Pauses a source while there is at least one reason for it. */
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
  /** The limit for one of its messages. */
  maxMessageBytes: number;
  gate: Gate;
  signal: AbortSignal;
  onSlow: () => void;
}

/**
 * The messages that arrive on the stream of a WebSocket. The WebSocket holds a whole message in memory, so this reads
 * only the beginning of a large message until the message has room.
 */
export class Arrivals {
  readonly #options: Options;
  #bytes = 0;
  /** The room of the message that is arriving. */
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

  /** A message has arrived. It keeps its room until the caller disposes of it. */
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

  /** Frees the room of a message that has arrived in part: its rest will not come. */
  async #leave(): Promise<void> {
    (await this.arrived(0))?.[Symbol.dispose]();
  }
}
