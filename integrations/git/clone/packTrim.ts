import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { createInflate, inflateSync } from 'node:zlib';

// A worker thread that trims one incomplete pack (see salvage.ts) and posts the result. Inflating keeps the thread
// busy.

export interface TrimJob {
  path: string;
  /** Objects that are found within this time are kept. */
  lookMs: number;
}

export interface TrimmedPack {
  objects: number;
  checksum: string;
}

/** Larger objects are inflated as a stream. */
const atOnceBytes = 8 * 1_048_576;
const windowBytes = 4 * 1_048_576;
const headerBytes = 12;
/** Object types in a pack: 1 to 4 are whole objects, the other two are deltas. */
const [commit, tag, offsetDelta, referenceDelta] = [1, 4, 6, 7];

/**
 * Cuts the file after its last whole object, and makes a valid pack of it. Undefined if there is no whole object. The
 * thread may be killed at any moment: the next attempt cuts at the same place.
 */
async function trimPack({ path, lookMs }: TrimJob): Promise<TrimmedPack | undefined> {
  const untilMs = performance.now() + lookMs;
  await using file = await open(path, 'r+');
  const header = Buffer.alloc(headerBytes);
  const { bytesRead } = await file.read(header, 0, headerBytes, 0);
  if (bytesRead < headerBytes || header.toString('latin1', 0, 4) !== 'PACK') return undefined;
  const pack = new PackReader(file, path, (await file.stat()).size, untilMs);
  const announced = header.readUInt32BE(8);
  let [objects, end] = [0, headerBytes];
  for (; objects < announced; objects += 1) {
    const next = await pack.endOf(end);
    if (next === undefined) break;
    end = next;
  }
  if (objects === 0) return undefined;
  header.writeUInt32BE(objects, 8);
  await file.write(header, 0, headerBytes, 0);
  await file.truncate(end);
  const hash = createHash('sha1');
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) hash.update(chunk as Buffer);
  const checksum = hash.digest();
  await file.write(checksum, 0, checksum.length, end);
  await file.sync();
  return { objects, checksum: checksum.toString('hex') };
}

/** Finds where the objects of a pack end (gitformat-pack). */
class PackReader {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #size: number;
  readonly #untilMs: number;
  #window: Buffer = Buffer.alloc(0);
  #windowStart = 0;

  constructor(file: FileHandle, path: string, size: number, untilMs: number) {
    this.#file = file;
    this.#path = path;
    this.#size = size;
    this.#untilMs = untilMs;
  }

  /** The first byte after the object at `start`. Undefined if the object is incomplete or damaged, or time is up. */
  async endOf(start: number): Promise<number | undefined> {
    if (this.#isLate()) return undefined;
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
    else if (type < commit || type > tag) return undefined;
    if (start + at >= this.#size) return undefined;
    const used = size > atOnceBytes ? await this.#stream(start + at, size) : await this.#inflate(start + at, size);
    return used === undefined ? undefined : start + at + used;
  }

  #isLate(): boolean {
    return performance.now() > this.#untilMs;
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
    // Opens the path again, because destroying a stream closes its file.
    const source = createReadStream(this.#path, { start });
    let length = 0;
    try {
      source.on('error', () => inflate.destroy()).pipe(inflate);
      for await (const chunk of inflate) {
        length += (chunk as Buffer).length;
        if (length > size || this.#isLate()) return undefined;
      }
      return length === size ? inflate.bytesWritten : undefined;
    } catch {
      return undefined;
    } finally {
      source.unpipe(inflate).destroy();
    }
  }

  /** At most `count` bytes from `start`. */
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

parentPort?.postMessage(await trimPack(workerData as TrimJob));
