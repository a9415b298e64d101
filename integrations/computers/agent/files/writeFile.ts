import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, realpath, rename, stat, unlink } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { folderOf, makeFolderDurably, syncFolder } from '../../../../disk/durable.ts';
import { Refusal, type WriteRequest } from '../../protocol/agentRequests.ts';
import { etagOf } from './entries.ts';
import { refuseKept } from './kept.ts';
import { inTurn, temporaryBeside } from './paths.ts';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;

/**
 * Writes a temporary file and renames it over the target. Readers see either all old or all new content, and a write
 * that is cut leaves the old content. When it returns, the new content is on the disk.
 */
export async function writeFileFrom(source: Readable, path: Buffer, options: WriteRequest) {
  if (options.parents === true) await makeFolderDurably(folderOf(path));
  // Write what a link points to; the link stays.
  const target = await realpath(path, { encoding: 'buffer' }).catch(() => path);
  const old = await currentOf(target, options);
  await refuseKept(target);
  const temporary = temporaryBeside(target);
  const mode = options.mode ?? (old === undefined ? undefined : Number(old.mode) & 0o7777);
  const file = await open(temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o644);
  try {
    try {
      await copy(source, file);
      if (mode !== undefined) await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    const written = await stat(temporary, { bigint: true });
    const answer = await inTurn(async () => {
      const replaced = await currentOf(target, options);
      await rename(temporary, target);
      // The rename has changed its ctime, and so its ETag.
      const renamed = await stat(target, { bigint: true });
      return { size: Number(written.size), etag: etagOf(renamed), isNew: replaced === undefined };
    });
    await syncFolder(folderOf(target));
    return answer;
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** The file that is there now. Throws `PRECONDITION_FAILED`, and `NOT_A_FILE` for a folder, a FIFO or a device. */
async function currentOf(path: Buffer, { ifMatch, ifNew }: WriteRequest): Promise<BigIntStats | undefined> {
  const stats = await stat(path, { bigint: true }).catch(() => undefined);
  if (stats?.isFile() === false) throw new Refusal('NOT_A_FILE');
  const isExpected = ifMatch === undefined || (stats !== undefined && (ifMatch === '*' || ifMatch === etagOf(stats)));
  if (!isExpected || (ifNew === true && stats !== undefined)) throw new Refusal('PRECONDITION_FAILED');
  return stats;
}

async function copy(source: Readable, file: FileHandle): Promise<void> {
  for await (const chunk of source as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
  }
}
