/** Writes values as lines of JSON. `fromLines` reads them back. Both hold one value in memory at a time. */
export async function* toLines(values: AsyncIterable<object>): AsyncGenerator<Buffer> {
  for await (const value of values) yield Buffer.from(`${JSON.stringify(value)}\n`);
}

export async function* fromLines<T>(bytes: AsyncIterable<Buffer>): AsyncGenerator<T> {
  let begun: Buffer[] = [];
  for await (let chunk of bytes) {
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n')) {
      yield JSON.parse(Buffer.concat([...begun, chunk.subarray(0, end)]).toString('utf8')) as T;
      begun = [];
      chunk = chunk.subarray(end + 1);
    }
    begun.push(chunk);
  }
}
