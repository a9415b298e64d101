import { createHmac } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import { associatedData, decrypt, encrypt } from '../../crypto/aead.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { DamageError } from '../errors.ts';
import type { Place } from '../places/place.ts';
import type { VaultKeys } from './header.ts';
import { mostPieceBytes, piecesOf } from './pieces.ts';

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);
const level = { params: { [constants.ZSTD_c_compressionLevel]: 3 } };
const piecesFolder = 'pieces/';
/** Limit for all streams together. Each write takes a few MiB of memory. */
const writesAtOnce = 8;
const readAhead = 4;
/** Pieces that a backup reuses are read to check them: the first `leastSample`, then this share of the others. */
const leastSample = 20;
const sampleShare = 0.01;
const mostSampleBytes = 200 * 1_048_576;
/** Compressing and sealing makes an incompressible piece slightly larger. */
const mostSealedPieceBytes = mostPieceBytes + 65_536;
/** Limit for a manifest, which names all pieces of dumps and homes. Enough for some 10 TiB of them. */
const mostSealedBytes = 512 * 1_048_576;

/** A stored stream. */
export interface Stored {
  bytes: number;
  /** Names of the pieces, in order. */
  pieces: string[];
}

/**
 * Keeps streams in a place of backups. A stream is cut into pieces. Each piece is stored once, compressed and sealed,
 * under a name that depends only on its content and the key.
 */
export class Vault {
  readonly place: Place;
  private readonly keys: VaultKeys;
  /** Ids of the pieces already there. Undefined until {@link look} has listed them. */
  private known: Set<string> | undefined;
  private readonly writing = new Set<Promise<void>>();
  /** Bytes of all stored streams, and the stored size of the new pieces among them. */
  readonly counts = { bytes: 0, newBytes: 0 };

  /** The reused pieces that were read, and how many of them were damaged. */
  readonly sample = { seen: new Set<string>(), bytes: 0, damaged: 0 };

  constructor(place: Place, keys: VaultKeys) {
    this.place = place;
    this.keys = keys;
  }

  /** Lists all pieces. A million of them takes some 100 MB of memory. */
  async look(): Promise<ReadonlySet<string>> {
    this.known = new Set();
    for await (const name of this.place.list(piecesFolder)) {
      const id = name.slice(name.lastIndexOf('/') + 1);
      // Ignores files that are not ours.
      if (idForm.test(id) && name === nameOf(id)) this.known.add(id);
    }
    return this.known;
  }

  /** Whether all pieces of a stream are there. Reads a sample of them to check. */
  async has({ pieces }: Stored): Promise<boolean> {
    for (const piece of pieces) if (!(await this.isGood(piece))) return false;
    return true;
  }

  /**
   * Whether a piece is there. Reads a sample, since a damaged piece would damage every later backup too. A damaged
   * piece counts as missing, so the next stream with its content writes it again.
   */
  private async isGood(id: string): Promise<boolean> {
    if (this.known?.has(id) !== true) return false;
    const { sample } = this;
    if (sample.seen.has(id) || sample.bytes >= mostSampleBytes) return true;
    if (sample.seen.size >= leastSample && Math.random() >= sampleShare) return true;
    sample.seen.add(id);
    try {
      sample.bytes += (await this.readPiece(id)).length;
      return true;
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      sample.damaged += 1;
      this.known.delete(id);
      return false;
    }
  }

  async store(bytes: AsyncIterable<Buffer>): Promise<Stored> {
    const stored: Stored = { bytes: 0, pieces: [] };
    const own = new Set<Promise<void>>();
    const failed = new AbortController();
    for await (const piece of piecesOf(bytes, this.keys.cuts)) {
      stored.bytes += piece.length;
      const id = createHmac('sha256', this.keys.names).update(piece).digest('hex');
      stored.pieces.push(id);
      this.counts.bytes += piece.length;
      if (await this.isGood(id)) continue;
      while (this.writing.size >= writesAtOnce) await Promise.race(this.writing);
      failed.signal.throwIfAborted();
      // Never rejects: it frees its place in any case, and its failure concerns this stream alone.
      const write: Promise<void> = this.writePiece(id, piece)
        .catch((error: unknown) => failed.abort(error))
        .then(() => {
          for (const set of [own, this.writing]) set.delete(write);
        });
      for (const set of [own, this.writing]) set.add(write);
    }
    await Promise.all(own);
    failed.signal.throwIfAborted();
    return stored;
  }

  private async writePiece(id: string, piece: Buffer): Promise<void> {
    const sealed = encrypt(this.keys.seal, ofPiece(id), await compress(piece, level));
    await this.place.write(nameOf(id), sealed);
    this.known?.add(id);
    this.counts.newBytes += sealed.length;
  }

  /** Throws {@link DamageError} if a piece is missing or changed. */
  async *read({ pieces }: Stored): AsyncGenerator<Buffer> {
    const ahead: Promise<Buffer>[] = [];
    let next = 0;
    const begin = () => {
      const id = pieces[next++];
      if (id === undefined) return;
      const piece = this.readPiece(id);
      piece.catch(() => undefined); // thrown when its turn comes
      ahead.push(piece);
    };
    for (let count = 0; count < readAhead; count++) begin();
    for (let piece = ahead.shift(); piece !== undefined; piece = ahead.shift()) {
      const bytes = await piece;
      begin();
      yield bytes;
    }
  }

  async readPiece(id: string): Promise<Buffer> {
    const sealed = await this.place.read(nameOf(id), mostSealedPieceBytes);
    if (sealed === undefined) throw new DamageError(`The piece ${nameOf(id)} is missing in ${this.place.title}.`);
    try {
      return await decompress(decrypt(this.keys.seal, ofPiece(id), sealed), { maxOutputLength: mostPieceBytes });
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      throw new DamageError(`The piece ${nameOf(id)} in ${this.place.title} is damaged.`);
    }
  }

  async removePieces(ids: readonly string[]): Promise<void> {
    await this.place.remove(ids.map(nameOf));
    for (const id of ids) this.known?.delete(id);
  }

  /** Writes a small value as a whole under a name of its own, for {@link readSealed}. */
  async writeSealed(name: string, value: object): Promise<void> {
    const bytes = await compress(Buffer.from(JSON.stringify(value)), level);
    await this.place.write(name, encrypt(this.keys.seal, ofName(name), bytes));
  }

  /** Undefined if the name does not exist. */
  async readSealed(name: string): Promise<unknown> {
    const sealed = await this.place.read(name, mostSealedBytes);
    if (sealed === undefined) return undefined;
    try {
      return JSON.parse((await decompress(decrypt(this.keys.seal, ofName(name), sealed))).toString('utf8'));
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      throw new DamageError(`${name} in ${this.place.title} is damaged.`);
    }
  }
}

const idForm = /^[0-9a-f]{64}$/;
const nameOf = (id: string) => `${piecesFolder}${id.slice(0, 2)}/${id}`;
const ofPiece = (id: string) => associatedData('atrium/backup-piece/v1', id);
const ofName = (name: string) => associatedData('atrium/backup-file/v1', name);
