/** Sizes of pieces. The average is 1 MiB. A stream shorter than the least size is one piece. */
const leastPieceBytes = 256 * 1_024;
export const mostPieceBytes = 4 * 1_048_576;
/** After the least size, each byte ends a piece with a probability of 2^-20. */
const endsMask = 0xfffff000;

/**
 * Cuts a stream by its content, with a rolling hash over the last 32 bytes. Content that repeats at another offset or
 * in another stream is cut at the same places, and so gives the same pieces. `table` (1 KiB) is secret, so that the
 * lengths of pieces reveal nothing about their content.
 */
export async function* piecesOf(bytes: AsyncIterable<Buffer>, table: Buffer): AsyncGenerator<Buffer> {
  const gear = new Uint32Array(256);
  for (let at = 0; at < gear.length; at++) gear[at] = table.readUInt32LE(at * 4);
  let chunks: Buffer[] = [];
  let size = 0;
  let hash = 0;
  for await (const given of bytes) {
    let from = 0;
    while (from < given.length) {
      const end = endIn(given, from);
      // A copy, since the sender may reuse the memory.
      chunks.push(Buffer.from(given.subarray(from, end.at)));
      size += end.at - from;
      from = end.at;
      if (!end.isEnd) continue;
      yield Buffer.concat(chunks);
      [chunks, size, hash] = [[], 0, 0];
    }
  }
  if (size > 0) yield Buffer.concat(chunks);

  /** The position of the piece's end in these bytes, if it is there. */
  function endIn(given: Buffer, from: number): { at: number; isEnd: boolean } {
    const last = Math.min(given.length, from + mostPieceBytes - size);
    // No piece ends before the least size. The hash depends on the last 32 bytes alone, so it can start 32 bytes before
    // that.
    let at = Math.min(last, from + Math.max(0, leastPieceBytes - 32 - size));
    let rolling = hash;
    for (; at < last; at++) {
      rolling = ((rolling << 1) + (gear[given[at] as number] as number)) | 0;
      if ((rolling & endsMask) === 0 && size + at - from + 1 >= leastPieceBytes) return { at: at + 1, isEnd: true };
    }
    hash = rolling;
    return { at: last, isEnd: size + last - from === mostPieceBytes };
  }
}
