import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { Refusal } from '../../protocol/agentRequests.ts';
import type { ExpectedFiles } from '../../types.ts';

const { O_NOCTTY, O_NONBLOCK, O_RDONLY } = constants;
const pieceBytes = 1_048_576;
const filesAtOnce = 8;
/** More than an app may have. Stops the read of a file that grows without end. */
const maxBytes = 1_024 * 1_048_576;

/** Throws `FILES_CHANGED` unless each file has its expected content. */
export async function requireFiles({ folder, sha256 }: ExpectedFiles): Promise<void> {
  const files = Object.entries(sha256);
  let left = maxBytes;
  const look = async () => {
    const piece = Buffer.allocUnsafe(pieceBytes);
    for (let next = files.pop(); next !== undefined; next = files.pop()) {
      const [path, expected] = next;
      const actual = await hashOf(`${folder}/${path}`, piece, (bytes) => {
        left -= bytes;
        return left >= 0;
      });
      if (actual !== expected) throw new Refusal('FILES_CHANGED');
    }
  };
  await Promise.all(Array.from({ length: filesAtOnce }, look));
}

/** Undefined if the path is not a readable regular file, or if `mayRead` refuses its next bytes. */
async function hashOf(path: string, piece: Buffer, mayRead: (bytes: number) => boolean): Promise<string | undefined> {
  // An import would make the agent start 10 ms later.
  const { createHash } = process.getBuiltinModule('node:crypto');
  const hash = createHash('sha256');
  try {
    await using file = await open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!(await file.stat()).isFile()) return undefined;
    for (;;) {
      const { bytesRead } = await file.read(piece, 0, piece.length, null);
      if (bytesRead === 0) return hash.digest('hex');
      if (!mayRead(bytesRead)) return undefined;
      hash.update(piece.subarray(0, bytesRead));
    }
  } catch {
    return undefined;
  }
}
