import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { readerCommand } from './commandLine.ts';
import type { Readings } from './kinds/kinds.ts';
import type { Readable, ReadLimits } from './kinds/limits.ts';
import { watchUsage } from './watch.ts';
import { type Answer, AnswerStream, type Job, jobHeader } from './wire.ts';

/**
 * A document's result. `broken`: it is not what it claims to be, or is encrypted. `costly`: reading it exceeded the
 * time or the memory.
 */
export type Reading<Kind extends Readable> =
  | { kind: 'read'; value: Readings[Kind] }
  | { kind: 'broken' }
  | { kind: 'costly' };

const startLimitMs = 30_000;
/** After this many documents a process is replaced, because a parser may leak, and a document may leave traces. */
const maxDocuments = 50;
const maxBusyMs = 60_000;

/** One process that reads documents, one at a time. It ends at the first one that it cannot read. */
export class ReaderProcess {
  readonly #child: ChildProcess;
  readonly #answers = new AnswerStream();
  readonly #ready: Promise<void>;
  /** The waiter for the next answer, and answers that arrived before a waiter. */
  #waiting: PromiseWithResolvers<Answer> | undefined;
  #early: Answer[] = [];
  #hasEnded = false;
  /** Ended by us, through no fault of the document. */
  #isDismissed = false;
  #complaint = '';
  #documents = 0;
  #busyMs = 0;

  constructor() {
    const [command, ...args] = readerCommand();
    this.#child = spawn(command, args, { cwd: '/', env: {}, stdio: ['pipe', 'ignore', 'pipe', 'pipe'] });
    this.#ready = this.#start();
    this.#ready.catch(() => undefined);
    this.#child.once('error', () => this.#kill());
    // `close` instead of `exit`, so that all output has been read.
    this.#child.once('close', () => this.#kill());
    // The streams are absent if the system could not start the process.
    const [input, , errors, output] = this.#child.stdio as (Duplex | undefined)[];
    for (const stream of [input, errors, output]) stream?.on('error', () => this.#kill());
    output?.on('data', (chunk: Buffer) => this.#hear(chunk));
    errors?.on('data', (chunk: Buffer) => {
      // Only while it starts: later it may contain parts of a document.
      if (this.#documents === 0) this.#complaint = `${this.#complaint}${chunk}`.slice(0, 1_000);
    });
  }

  get isUsable(): boolean {
    return !this.#hasEnded && this.#documents < maxDocuments && this.#busyMs < maxBusyMs;
  }

  /**
   * Reads a document; undefined when the process ended before it received the document, as an idle process may. Throws
   * when the process did not start, or the signal's reason.
   */
  async read<Kind extends Readable>(
    job: Job & { kind: Kind },
    limits: ReadLimits,
    signal: AbortSignal,
  ): Promise<Reading<Kind> | undefined> {
    const stop = () => this.end();
    signal.addEventListener('abort', stop, { once: true });
    try {
      signal.throwIfAborted();
      await this.#ready;
      return await this.#readNext(job, limits);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** Kills the process now. */
  end(): void {
    this.#isDismissed = true;
    this.#kill();
  }

  #kill(): void {
    this.#hasEnded = true;
    this.#child.kill('SIGKILL');
    this.#child.stdin?.destroy();
    this.#waiting?.reject(new Error('A reading process has ended.'));
    this.#waiting = undefined;
  }

  async #readNext<Kind extends Readable>(
    job: Job & { kind: Kind },
    limits: ReadLimits,
  ): Promise<Reading<Kind> | undefined> {
    const begin = performance.now();
    using _watch = watchUsage(this.#child.pid, limits, () => this.#kill());
    const timer = setTimeout(() => this.#kill(), limits.timeMs);
    try {
      this.#documents++;
      this.#child.stdin?.write(jobHeader(job));
      this.#child.stdin?.write(job.bytes);
      if ((await this.#unlessDismissed(this.#answer())) === undefined) return undefined;
      const said = await this.#unlessDismissed(this.#answer());
      if (said !== undefined && 'read' in said) return { kind: 'read', value: said.read as Readings[Kind] };
      // A parser that gave up midway may still hold memory.
      this.#kill();
      return { kind: said === undefined ? 'costly' : 'broken' };
    } finally {
      clearTimeout(timer);
      this.#busyMs += performance.now() - begin;
    }
  }

  async #start(): Promise<void> {
    const timer = setTimeout(() => this.#kill(), startLimitMs);
    try {
      await this.#answer();
    } catch (error) {
      if (this.#isDismissed) throw error;
      throw new Error(`A reading process did not start. ${this.#complaint}`.trim());
    } finally {
      clearTimeout(timer);
    }
  }

  /** The next answer; undefined if the process ends without one. Throws if it was dismissed. */
  #unlessDismissed(answer: Promise<Answer>): Promise<Answer | undefined> {
    return answer.catch((error: unknown) => {
      if (this.#isDismissed) throw error;
      return undefined;
    });
  }

  async #answer(): Promise<Answer> {
    const early = this.#early.shift();
    if (early !== undefined) return early;
    if (this.#hasEnded) throw new Error('A reading process has ended.');
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  #hear(chunk: Buffer): void {
    try {
      for (const answer of this.#answers.add(chunk)) {
        if (this.#waiting === undefined) this.#early.push(answer);
        this.#waiting?.resolve(answer);
        this.#waiting = undefined;
        if (this.#early.length > 1) throw new Error('A reading process says more than it was asked for.');
      }
    } catch {
      this.#kill();
    }
  }
}
