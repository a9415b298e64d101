import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { createInflate, inflateSync } from 'node:zlib';
import type { Git } from './git.ts';
import { namesIn } from './repository.ts';

/** Larger objects are inflated as a stream. */
const atOnceBytes = 8 * 1_048_576;
const windowBytes = 4 * 1_048_576;
const header = 12;
const commit = 1;
const offsetDelta = 6;
const referenceDelta = 7;

/**
 * Makes packs of what arrived before a transfer was cut: a pack's beginning is whole objects, and a delta comes after
 * what it is made from. Returns how many objects that are. They may refer to what is not there, so they count as of a
 * partial clone. What cannot be used is removed.
 */
export async function salvagePacks(git: Git): Promise<number> {
  const packs = join(git.dir, 'objects', 'pack');
  let objects = 0;
  for (const name of await namesIn(packs)) {
    if (!name.startsWith('tmp_pack_')) continue;
    const path = join(packs, name);
    const trimmed = await trimPack(path, git.signal);
    if (trimmed === undefined) {
      await rm(path, { force: true });
      continue;
    }
    const base = join(packs, `pack-${trimmed.checksum}`);
    await rename(path, `${base}.pack`);
    const indexed = await git.run(['index-pack', '--promisor', `${base}.pack`]);
    if (indexed.code === 0) objects += trimmed.objects;
    else for (const ending of ['pack', 'idx', 'rev', 'promisor']) await rm(`${base}.${ending}`, { force: true });
  }
  return objects;
}

/** Cuts the file behind its last whole object, and makes a valid pack of it. Undefined where there is none. */
async function trimPack(path: string, signal: AbortSignal): Promise<{ objects: number; checksum: string } | undefined> {
  await using file = await open(path, 'r+');
  const start = Buffer.alloc(header);
  const { bytesRead } = await file.read(start, 0, header, 0);
  if (bytesRead < header || start.toString('latin1', 0, 4) !== 'PACK') return undefined;
  const { size } = await file.stat();
  const pack = new PackReader(file, size);
  const announced = start.readUInt32BE(8);
  let [objects, end] = [0, header];
  for (let next: number | undefined = header; objects < announced; objects += 1) {
    signal.throwIfAborted();
    next = await pack.endOf(end);
    if (next === undefined) break;
    end = next;
    if (objects % 500 === 0) await setImmediate();
  }
  if (objects === 0) return undefined;
  start.writeUInt32BE(objects, 8);
  await file.write(start, 0, header, 0);
  await file.truncate(end);
  const hash = createHash('sha1');
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) hash.update(chunk as Buffer);
  const checksum = hash.digest();
  await file.write(checksum, 0, checksum.length, end);
  await file.sync();
  return { objects, checksum: checksum.toString('hex') };
}

/** Finds where objects of a pack end (gitformat-pack). */
class PackReader {
  readonly #file: FileHandle;
  readonly #size: number;
  #window: Buffer = Buffer.alloc(0);
  #windowStart = 0;

  constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.#size = size;
  }

  /** The first byte behind the object that begins there, or undefined where the file ends before, or it is damaged. */
  async endOf(start: number): Promise<number | undefined> {
    const head = await this.#bytes(start, 64);
    let at = 0;
    let byte = head[at] ?? 0;
    const type = (byte >> 4) & 7;
    let [size, factor] = [byte & 15, 16];
    while (byte & 0x80) {
      at += 1;
      byte = head[at] ?? 0;
      size += (byte & 0x7f) * factor;
      factor *= 128;
    }
    at += 1;
    if (type === offsetDelta) while ((head[at++] ?? 0) & 0x80);
    else if (type === referenceDelta) at += 20;
    else if (type < commit || type > 4) return undefined;
    if (start + at >= this.#size) return undefined;
    const used = size > atOnceBytes ? await this.#stream(start + at, size) : await this.#inflate(start + at, size);
    return used === undefined ? undefined : start + at + used;
  }

  async #inflate(start: number, size: number): Promise<number | undefined> {
    const most = size + Math.ceil(size / 1_000) + 128;
    try {
      const options = { info: true, maxOutputLength: size + 1 };
      const inflated = inflateSync(await this.#bytes(start, most), options) as unknown as {
        buffer: Buffer;
        engine: { bytesWritten: number };
      };
      return inflated.buffer.length === size ? inflated.engine.bytesWritten : undefined;
    } catch {
      return undefined;
    }
  }

  async #stream(start: number, size: number): Promise<number | undefined> {
    const inflate = createInflate();
    const source = this.#file.createReadStream({ start, autoClose: false });
    let length = 0;
    try {
      source.on('error', () => inflate.destroy()).pipe(inflate);
      for await (const chunk of inflate) length += (chunk as Buffer).length;
      return length === size ? inflate.bytesWritten : undefined;
    } catch {
      return undefined;
    } finally {
      source.unpipe(inflate).destroy();
    }
  }

  /** At most so many bytes from there. */
  async #bytes(start: number, count: number): Promise<Buffer> {
    const end = Math.min(start + count, this.#size);
    if (start < this.#windowStart || end > this.#windowStart + this.#window.length) {
      const window = Buffer.allocUnsafe(Math.max(0, Math.min(Math.max(windowBytes, count), this.#size - start)));
      const { bytesRead } = await this.#file.read(window, 0, window.length, start);
      this.#window = window.subarray(0, bytesRead);
      this.#windowStart = start;
    }
    return this.#window.subarray(start - this.#windowStart, end - this.#windowStart);
  }
}
