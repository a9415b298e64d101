import { ReadableStream } from 'node:stream/web';

/**
 * A response that is read up to so many bytes, as they are unpacked; then its reader gets `tooLarge`, and the rest is
 * not waited for.
 */
export function limited(response: Response, maxBytes: number, tooLarge: () => Error): Response {
  const { body, status, headers } = response;
  if (body === null) return response;
  async function* read(from: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const chunk of from) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLarge();
      yield chunk;
    }
  }
  const stream = ReadableStream.from(read(body));
  return new Response(stream as never, { status, headers: Object.fromEntries(headers) });
}

/** A fetch whose answers are documents of a protocol: whoever answers with more than a megabyte does not speak it. */
export const limitedFetch: typeof globalThis.fetch = async (input, init) =>
  limited(await fetch(input, init), 1_048_576, () => new Error('The answer is longer than 1 MiB.'));
