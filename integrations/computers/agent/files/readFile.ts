import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, readlink } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { type ReadRequest, Refusal } from '../../protocol/agentRequests.ts';
import { encodeMessage, messageKind } from '../../protocol/messages.ts';
import { etagOf, sizeOf, timeOf } from './entries.ts';

const { O_NOCTTY, O_NONBLOCK, O_RDONLY } = constants;
const pieceBytes = 65_536;
/** Files that the kernel generates claim to be empty. At most this much of them is read. */
const maxMadeUpBytes = 1_048_576;
/**
 * Files that describe a process, including its variables and memory. Permission to read files is not permission to run
 * programs.
 */
const ofProcess = /^\/proc\/\d+\//;

/** Sends a description of the file, then its bytes or a part of them. */
export async function readFileTo(stream: Duplex, path: Buffer, part: ReadRequest): Promise<void> {
  // With O_NONBLOCK, opening a FIFO does not wait for a writer.
  await using file = await open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  const stats = await file.stat({ bigint: true });
  if (!stats.isFile()) throw new Refusal('NOT_A_FILE');
  // Look at the opened file, not at the path: a link cannot redirect it any more.
  if (ofProcess.test(await readlink(`/proc/self/fd/${file.fd}`))) throw new Refusal('FILE_ACCESS_DENIED');
  const madeUp = stats.size === 0n ? await readMadeUp(file) : undefined;
  const size = madeUp?.length ?? sizeOf(stats);
  const { start, end } = rangeOf(part, size);
  const mode = Number(stats.mode) & 0o7777;
  const about = { size, mode, modifiedAt: timeOf(stats), etag: etagOf(stats as BigIntStats), start, end };
  stream.write(encodeMessage(messageKind.answer, about));
  if (madeUp === undefined) await copy(file, stream, start, end);
  else await write(stream, madeUp.subarray(start, end));
  stream.end();
  stream.resume();
}

function rangeOf({ start, end, suffix }: ReadRequest, size: number): { start: number; end: number } {
  if (suffix !== undefined) return { start: Math.max(0, size - suffix), end: size };
  if (start === undefined) return { start: 0, end: size };
  if (start >= size) throw new Refusal('RANGE_NOT_SATISFIABLE');
  return { start, end: Math.min(end === undefined ? size : end + 1, size) };
}

async function copy(file: FileHandle, stream: Duplex, start: number, end: number): Promise<void> {
  for (let at = start; at < end; ) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, end - at));
    const { bytesRead } = await file.read(piece, 0, piece.length, at);
    if (bytesRead === 0) {
      // The file became shorter, so the size that was sent is wrong.
      stream.destroy(new Error('The file has changed.'));
      return;
    }
    at += bytesRead;
    if (!(await write(stream, piece.subarray(0, bytesRead)))) return;
  }
}

async function readMadeUp(file: FileHandle): Promise<Buffer> {
  const bytes = Buffer.alloc(maxMadeUpBytes);
  let length = 0;
  while (length < bytes.length) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

/** Writes, and waits until the stream takes more. Returns false if the stream has ended. */
async function write(stream: Duplex, bytes: Buffer): Promise<boolean> {
  if (bytes.length > 0 && !stream.destroyed && !stream.write(bytes)) {
    await new Promise<void>((resolve) => {
      const done = () => {
        stream.off('drain', done).off('close', done);
        resolve();
      };
      stream.on('drain', done).on('close', done);
    });
  }
  return !stream.destroyed;
}
