import { setTimeout as delay } from 'node:timers/promises';

interface Patience {
  /** The pause after the first look. */
  firstMs: number;
  /** The longest pause. Default: all pauses are as long as the first. */
  mostMs?: number;
  /** Default: for ever. */
  forMs?: number;
  signal?: AbortSignal | undefined;
}

/** A pause lasts this fraction of the time waited so far, so an end is noticed at most that much late. */
const latePart = 0.15;

/**
 * Calls `look` until `isDone` or until the time is over, and returns what it saw last. For ends that nothing announces,
 * such as the change of a row by any process. Rejects with an `AbortError` if the signal aborts during a pause.
 */
export async function lookUntil<T>(
  look: () => T | Promise<T>,
  isDone: (seen: T) => boolean,
  { firstMs, mostMs = firstMs, forMs = Number.POSITIVE_INFINITY, signal }: Patience,
): Promise<T> {
  const begun = performance.now();
  for (;;) {
    const seen = await look();
    const waitedMs = performance.now() - begun;
    if (isDone(seen) || waitedMs > forMs) return seen;
    await delay(Math.min(Math.max(firstMs, waitedMs * latePart), mostMs), undefined, { signal });
  }
}

/** What several callers wait for again and again, for example that a log has grown. */
export class Changes {
  #next = Promise.withResolvers<void>();

  /** Settles at the next `tell`. */
  get next(): Promise<void> {
    return this.#next.promise;
  }

  tell(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }
}

/** The outcome of the work, or a rejection with the signal's reason if that is aborted first. The work itself goes on. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** The outcome of the work, or `otherwise` if it takes longer. The work itself goes on. */
export function orAfter<T, O>(work: Promise<T>, ms: number, otherwise: O): Promise<T | O> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(otherwise), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The bytes of a stream. Leaves the stream and returns a few bytes more than `max` if there are more. */
export async function bytesUpTo(stream: AsyncIterable<Uint8Array>, max: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > max) break;
  }
  return Buffer.concat(chunks);
}

/** All bytes of a stream. Throws the error of `tooMany` if there are more than `max`. */
export async function bytesOf(
  stream: AsyncIterable<Uint8Array>,
  max: number,
  tooMany: () => Error,
): Promise<Buffer<ArrayBuffer>> {
  const bytes = await bytesUpTo(stream, max);
  if (bytes.length > max) throw tooMany();
  return bytes;
}
