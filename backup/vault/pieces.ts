/** A piece of a stream is 1 MiB on average. What is smaller than the least is one piece. */
export const leastPieceBytes = 256 * 1_024;
export const mostPieceBytes = 4 * 1_048_576;
/** Past the least, each byte ends a piece with a chance of one in 2^20. */
const endsMask = 0xfffff000;

/**
 * Cuts a stream where its content says so, by a rolling hash over the last 32 bytes: what comes again, further on in
 * another stream, is cut in the same places and so is the same pieces. `table` (1 KiB) is secret, so that lengths of
 * pieces say nothing of what is in them.
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
      // A copy: whoever sends may use the memory again.
      chunks.push(Buffer.from(given.subarray(from, end.at)));
      size += end.at - from;
      from = end.at;
      if (!end.isEnd) continue;
      yield Buffer.concat(chunks);
      [chunks, size, hash] = [[], 0, 0];
    }
  }
  if (size > 0) yield Buffer.concat(chunks);

  /** Where the piece ends in these bytes, or that it does not. */
  function endIn(given: Buffer, from: number): { at: number; isEnd: boolean } {
    const last = Math.min(given.length, from + mostPieceBytes - size);
    // Before the least nothing ends, and after 32 bytes the hash has forgotten what was before.
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
