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

/** All bytes of a stream. Throws the error of `tooMany` if there are more than `max`. */
export async function bytesOf(
  stream: AsyncIterable<Uint8Array>,
  max: number,
  tooMany: () => Error,
): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > max) throw tooMany();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
