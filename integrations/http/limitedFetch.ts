import { ReadableStream } from 'node:stream/web';

/**
 * Limits a response to this many uncompressed bytes; beyond them its reader gets `tooLarge`, and the rest is dropped.
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

/** A fetch for protocol documents: a server that answers with more than a megabyte does not speak the protocol. */
export const limitedFetch: typeof globalThis.fetch = async (input, init) =>
  limited(await fetch(input, init), 1_048_576, () => new Error('The answer is longer than 1 MiB.'));
