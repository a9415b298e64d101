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
/** Those of all streams together that are being written: each has a few MiB of memory. */
const writesAtOnce = 8;
const readAhead = 4;
/** Of the pieces that a backup uses again, so many and then this share of the others are read. */
const leastSample = 20;
const sampleShare = 0.01;
const mostSampleBytes = 200 * 1_048_576;
/** What cannot be made smaller grows a little when it is compressed, and then sealed. */
const mostSealedPieceBytes = mostPieceBytes + 65_536;
/** Of a manifest, which names all pieces of dumps and homes: some 10 TiB of them. */
const mostSealedBytes = 512 * 1_048_576;

/** A stream as it is kept. */
export interface Stored {
  bytes: number;
  /** Names of its pieces, in order. */
  pieces: string[];
}

/**
 * Streams in a place of backups: cut to pieces, each of which is kept once, compressed and sealed, under a name that only
 * its content and the key make.
 */
export class Vault {
  readonly place: Place;
  private readonly keys: VaultKeys;
  /** What is there already; undefined until it was looked for. */
  private known: Set<string> | undefined;
  private readonly writing = new Set<Promise<void>>();
  /** Of all that was stored: what it had, and what of that was new, as it is kept. */
  readonly counts = { bytes: 0, newBytes: 0 };

  /** Of the pieces that are used again: which were read, and how many of them were damaged. */
  readonly sample = { seen: new Set<string>(), bytes: 0, damaged: 0 };

  constructor(place: Place, keys: VaultKeys) {
    this.place = place;
    this.keys = keys;
  }

  /** Looks for all pieces that there are: some 100 MB of memory for a million. */
  async look(): Promise<ReadonlySet<string>> {
    this.known = new Set();
    for await (const name of this.place.list(piecesFolder)) {
      const id = name.slice(name.lastIndexOf('/') + 1);
      // Somebody else's file is none of ours, wherever it lies.
      if (idForm.test(id) && name === nameOf(id)) this.known.add(id);
    }
    return this.known;
  }

  /** Whether all its pieces are there, and good where a sample of them is read again. */
  async has({ pieces }: Stored): Promise<boolean> {
    for (const piece of pieces) if (!(await this.isGood(piece))) return false;
    return true;
  }

  /**
   * Whether a piece is there. Some are read again: what is damaged would be in every later backup too. A damaged one is
   * no more there, and so is written anew by whoever has its content.
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
    for await (const piece of piecesOf(bytes, this.keys.cuts)) {
      stored.bytes += piece.length;
      const id = createHmac('sha256', this.keys.names).update(piece).digest('hex');
      stored.pieces.push(id);
      this.counts.bytes += piece.length;
      if (await this.isGood(id)) continue;
      while (this.writing.size >= writesAtOnce) await Promise.race(this.writing);
      const write = this.writePiece(id, piece);
      for (const set of [own, this.writing]) {
        set.add(write);
        const forget = () => set.delete(write);
        write.then(forget, () => undefined);
      }
    }
    try {
      await Promise.all(own);
    } finally {
      for (const write of own) this.writing.delete(write);
    }
    return stored;
  }

  private async writePiece(id: string, piece: Buffer): Promise<void> {
    const sealed = encrypt(this.keys.seal, ofPiece(id), await compress(piece, level));
    await this.place.write(nameOf(id), sealed);
    this.known?.add(id);
    this.counts.newBytes += sealed.length;
  }

  /** Throws {@link DamageError} where a piece is missing, or anything is different. */
  async *read({ pieces }: Stored): AsyncGenerator<Buffer> {
    const ahead: Promise<Buffer>[] = [];
    let next = 0;
    const begin = () => {
      const id = pieces[next++];
      if (id === undefined) return;
      const piece = this.readPiece(id);
      piece.catch(() => undefined); // told when it is its turn
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

  /** Writes something small as a whole, under a name of its own, for {@link readSealed}. */
  async writeSealed(name: string, value: object): Promise<void> {
    const bytes = await compress(Buffer.from(JSON.stringify(value)), level);
    await this.place.write(name, encrypt(this.keys.seal, ofName(name), bytes));
  }

  /** Undefined where there is nothing of that name. */
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
