import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import type { Envelope } from '../../../crypto/envelope.ts';
import type { StepRow } from './stepRows.ts';

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

type Which = Pick<StepRow, 'spaceId' | 'versionId' | 'number'>;

export type SealedLogs = ReturnType<typeof createSealedLogs>;

/** What steps put out is the space's, so its data key seals it. */
export function createSealedLogs(envelope: Envelope) {
  const contextOf = ({ versionId, number }: Which, part: string) => `environment_steps/${versionId}/${number}/${part}`;
  return {
    async seal(which: Which, part: 'log' | 'tail', bytes: Buffer): Promise<Buffer> {
      return envelope.seal(which.spaceId, contextOf(which, part), await compress(bytes));
    },
    async open(which: Which, part: 'log' | 'tail', sealed: Buffer): Promise<Buffer> {
      return decompress(await envelope.open(which.spaceId, contextOf(which, part), sealed));
    },
  };
}
