import type { Envelope } from './envelope.ts';
import { DecryptionError } from './errors.ts';

// Format: frames, each of a sealed piece's length (4 bytes) and the piece. A piece's context has its position and
// whether it is the last, so that missing, moved or cut off pieces do not open.
const pieceBytes = 1_048_576;
const lengthBytes = 4;
/** More than sealing adds to a piece. */
const mostOverhead = 1_024;

/** The scope and context that a stream is bound to. */
export interface SealedPlace {
  scope: string;
  context: string;
}

/** Seals bytes as they come, in pieces of 1 MiB. */
export async function* sealStream(
  envelope: Envelope,
  place: SealedPlace,
  bytes: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let position = 0;
  let waiting: Buffer | undefined;
  for await (const piece of piecesOf(bytes)) {
    if (waiting !== undefined) yield await frame(envelope, place, { position: position++, isLast: false }, waiting);
    waiting = piece;
  }
  yield await frame(envelope, place, { position, isLast: true }, waiting ?? Buffer.alloc(0));
}

/** The reverse of {@link sealStream}. Throws {@link DecryptionError} when anything differs or is missing. */
export async function* openStream(
  envelope: Envelope,
  place: SealedPlace,
  sealed: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let position = 0;
  let waiting: Buffer | undefined;
  for await (const piece of framesOf(sealed)) {
    if (waiting !== undefined) yield await open(envelope, place, { position: position++, isLast: false }, waiting);
    waiting = piece;
  }
  if (waiting === undefined) throw new DecryptionError('The sealed stream is empty.');
  yield await open(envelope, place, { position, isLast: true }, waiting);
}

interface At {
  position: number;
  isLast: boolean;
}

function contextAt({ context }: SealedPlace, { position, isLast }: At): string {
  return `${context}/${position}${isLast ? '/last' : ''}`;
}

async function frame(envelope: Envelope, place: SealedPlace, at: At, piece: Buffer): Promise<Buffer> {
  const sealed = await envelope.seal(place.scope, contextAt(place, at), piece);
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(sealed.length);
  return Buffer.concat([length, sealed]);
}

function open(envelope: Envelope, place: SealedPlace, at: At, sealed: Buffer): Promise<Buffer> {
  return envelope.open(place.scope, contextAt(place, at), sealed);
}

async function* piecesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + pieceBytes - size);
      // Copied, because the sender may reuse the memory.
      chunks.push(Buffer.from(part));
      size += part.length;
      at += part.length;
      if (size < pieceBytes) continue;
      yield Buffer.concat(chunks);
      [chunks, size] = [[], 0];
    }
  }
  if (size > 0) yield Buffer.concat(chunks);
}

async function* framesOf(sealed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chunks: Buffer[] = [];
  let size = 0;
  let wanted: number | undefined;
  for await (const chunk of sealed) {
    chunks.push(chunk);
    size += chunk.length;
    while (size >= (wanted ?? lengthBytes)) {
      const all = Buffer.concat(chunks);
      const taken = all.subarray(0, wanted ?? lengthBytes);
      chunks = [all.subarray(taken.length)];
      size -= taken.length;
      if (wanted !== undefined) {
        yield taken;
        wanted = undefined;
        continue;
      }
      wanted = taken.readUInt32BE();
      if (wanted > pieceBytes + mostOverhead) throw new DecryptionError('A piece of the sealed stream is too long.');
    }
  }
  if (size > 0 || wanted !== undefined) throw new DecryptionError('The sealed stream is cut off.');
}
