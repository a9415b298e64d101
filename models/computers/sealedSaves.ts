import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import { DomainError } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { detailOf } from './reasons.ts';

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);
/** The fastest level: homes are saved all the time, beside the computers. */
const fast = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** A piece of a saved home. */
export interface PieceOfSave {
  spaceId: string;
  saveId: string;
  number: number;
}

export type SealedSaves = ReturnType<typeof createSealedSaves>;

/** Saved homes hold everything that is on a computer, so the space's data key seals them for the object store. */
export function createSealedSaves(envelope: Envelope) {
  const contextOf = ({ saveId, number }: PieceOfSave) => `home_saves/${saveId}/${number}`;
  return {
    async seal(piece: PieceOfSave, bytes: Buffer): Promise<Buffer> {
      return envelope.seal(piece.spaceId, contextOf(piece), await compress(bytes, fast));
    },
    /** Throws 422 `SAVE_BROKEN` when the bytes were changed or belong to another piece. */
    async open(piece: PieceOfSave, sealed: Buffer): Promise<Buffer> {
      try {
        return await decompress(await envelope.open(piece.spaceId, contextOf(piece), sealed));
      } catch (error) {
        if (!(error instanceof DecryptionError)) throw error;
        throw saveBroken(error);
      }
    },
  };
}

export function saveBroken(cause?: unknown): DomainError {
  return new DomainError('unprocessable', 'SAVE_BROKEN', detailOf('SAVE_BROKEN'), { cause });
}
