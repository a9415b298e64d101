import { keepBounded } from '../../base/freshCache.ts';
import { type Readable, type ReadLimits, readLimits } from './kinds/limits.ts';
import { ReaderProcess, type Reading } from './readerProcess.ts';
import { type QueueLimits, ReaderQueue } from './readerQueue.ts';

export type { Reading } from './readerProcess.ts';

export interface ReaderOptions extends Partial<QueueLimits> {
  /** Tighter limits for every kind. */
  limits?: Partial<ReadLimits>;
  /** How long an idle process is kept. */
  idleMs?: number;
}

export interface ReadRequest {
  /** The space that owns the document. A process reads the documents of one space only. */
  spaceId: string;
  signal?: AbortSignal;
}

const defaults = { places: 2, waiting: 32, waitingOfOne: 8, maxWaitMs: 45_000, idleMs: 60_000 };
/** How many unreadable documents are remembered, and for how long: a machine that was only busy can read them later. */
const maxRemembered = 10_000;
const rememberedMs = 3_600_000;

type Failure = Exclude<Reading<Readable>, { kind: 'read' }>;

interface Idle {
  process: ReaderProcess;
  spaceId: string;
  timer: NodeJS.Timeout;
}

/**
 * Reads untrusted documents in processes that can be ended: a few at once, each with a limit of time and of memory. A
 * document that exceeded a limit is not retried. One per Atrium process; close it at the end.
 */
export class DocumentReaders {
  readonly #options: ReaderOptions & typeof defaults;
  readonly #queue: ReaderQueue;
  readonly #idle = new Set<Idle>();
  readonly #working = new Set<ReaderProcess>();
  /** Unreadable documents, by their hash; the oldest first. */
  readonly #failed = new Map<string, { reading: Failure; at: number }>();

  constructor(options: ReaderOptions = {}) {
    this.#options = { ...defaults, ...options };
    this.#queue = new ReaderQueue(this.#options);
  }

  close(): void {
    for (const { process, timer } of this.#idle) {
      clearTimeout(timer);
      process.end();
    }
    this.#idle.clear();
    for (const process of this.#working) process.end();
  }

  /**
   * Reads the text of a page of HTML in UTF-8 or of a PDF, or a document of YAML with the places of its values. Throws
   * 503 `READERS_BUSY` if too many documents wait, or the signal's reason.
   */
  async read<Kind extends Readable>(
    kind: Kind,
    bytes: Uint8Array,
    { spaceId, signal = new AbortController().signal }: ReadRequest,
  ): Promise<Reading<Kind>> {
    // Hashed off the event loop: a document may have 50 MB.
    const digest = await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>);
    const key = `${kind} ${Buffer.from(digest).toString('base64')}`;
    const known = this.#failureOf(key);
    if (known !== undefined) return known;
    using _place = await this.#queue.enter(spaceId, signal);
    // Another request may have tried it in the meantime.
    const knownNow = this.#failureOf(key);
    if (knownNow !== undefined) return knownNow;
    const limits = { ...readLimits[kind], ...this.#options.limits };
    const readIn = (process: ReaderProcess) =>
      this.#work(process, spaceId, () => process.read({ kind, bytes }, limits, signal));
    const reading = (await readIn(this.#take(spaceId))) ?? (await readIn(new ReaderProcess()));
    if (reading === undefined) throw new Error('Reading processes end before they have read anything.');
    if (reading.kind !== 'read') {
      keepBounded(this.#failed, maxRemembered, key, { reading, at: performance.now() });
    }
    return reading;
  }

  async #work<T>(process: ReaderProcess, spaceId: string, read: () => Promise<T>): Promise<T> {
    this.#working.add(process);
    try {
      return await read();
    } finally {
      this.#working.delete(process);
      this.#keep(process, spaceId);
    }
  }

  /** A process that has read nothing of another space. */
  #take(spaceId: string): ReaderProcess {
    const own = [...this.#idle].find((idle) => idle.spaceId === spaceId);
    const [oldest] = this.#idle;
    // Each busy process holds a slot, and so does this request.
    const isFull = this.#idle.size + this.#working.size >= this.#options.places;
    const taken = own ?? (isFull ? oldest : undefined);
    if (taken !== undefined) {
      clearTimeout(taken.timer);
      this.#idle.delete(taken);
      if (taken === own && own.process.isUsable) return own.process;
      taken.process.end();
    }
    return new ReaderProcess();
  }

  #keep(process: ReaderProcess, spaceId: string): void {
    if (!process.isUsable) {
      process.end();
      return;
    }
    const end = () => {
      this.#idle.delete(idle);
      process.end();
    };
    const idle: Idle = { process, spaceId, timer: setTimeout(end, this.#options.idleMs).unref() };
    this.#idle.add(idle);
  }

  #failureOf(key: string): Failure | undefined {
    const known = this.#failed.get(key);
    return known !== undefined && performance.now() - known.at < rememberedMs ? known.reading : undefined;
  }
}
