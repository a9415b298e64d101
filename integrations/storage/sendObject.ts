import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import type { DirectPut } from './directPut.ts';
import { storageCall } from './errors.ts';
import { PartBuffer } from './partBuffer.ts';
import type { PartUploads, StoredPart } from './partUploads.ts';

/** With at most 10,000 parts, this is enough for 80 GiB. */
export const partBytes = 8 * 1024 * 1024;
/** Buffers per upload, whatever the file's size: one fills while the others are sent. */
const partsInMemory = 3;
/**
 * How long to wait for parts under way when their object is given up. A part that is cut off may still arrive, even
 * after the store has discarded the others.
 */
const lastPartsMs = 2_000;

/**
 * Sends a stream as one object: in one request if it fits into a part, else in parts. If the stream or a part fails,
 * sending stops and the parts are discarded. Then this rejects with the first failure. A chunk's memory may be reused
 * when the next one is requested.
 */
export async function sendObject(
  store: { client: S3Client; direct: DirectPut | undefined; parts: PartUploads; bucket: string },
  key: string,
  bytes: AsyncIterable<Buffer>,
): Promise<void> {
  const upload = new PartedUpload(store.parts, key);
  try {
    let buffer = new PartBuffer(partBytes);
    for await (const chunk of bytes) {
      for (let at = 0; at < chunk.length; ) {
        if (buffer.isFull) buffer = await upload.send(buffer);
        at += buffer.append(at === 0 ? chunk : chunk.subarray(at));
      }
      upload.throwIfFailed();
    }
    if (upload.isBegun) {
      await upload.send(buffer);
      await upload.complete();
    } else if (!(await store.direct?.put(key, buffer.content))) {
      const command = new PutObjectCommand({ Bucket: store.bucket, Key: key, Body: buffer.content });
      await storageCall(store.client.send(command));
    }
  } catch (error) {
    throw await upload.giveUp(error);
  }
}

class PartedUpload {
  private readonly parts: PartUploads;
  private readonly key: string;
  private id: string | undefined;
  private readonly sent: StoredPart[] = [];
  private readonly sending = new Set<Promise<void>>();
  private readonly free: PartBuffer[] = [];
  private partNumber = 0;
  private readonly failed = new AbortController();
  private readonly torn = new AbortController();

  constructor(parts: PartUploads, key: string) {
    this.parts = parts;
    this.key = key;
  }

  get isBegun(): boolean {
    return this.id !== undefined;
  }

  /** Begins to send a part. Returns the buffer for the next part as soon as one is free. */
  async send(buffer: PartBuffer): Promise<PartBuffer> {
    this.id ??= await this.parts.begin(this.key);
    const partNumber = ++this.partNumber;
    const sending = this.sendPart({ uploadId: this.id, partNumber }, buffer);
    this.sending.add(sending);
    // `throwIfFailed` reports this error.
    sending.catch((error: unknown) => this.failed.abort(error)).finally(() => this.sending.delete(sending));
    while (this.sending.size >= partsInMemory) await Promise.race(this.sending);
    this.throwIfFailed();
    return this.free.pop() ?? new PartBuffer(partBytes);
  }

  throwIfFailed(): void {
    this.failed.signal.throwIfAborted();
  }

  async complete(): Promise<void> {
    await Promise.all(this.sending);
    this.throwIfFailed();
    const parts = this.sent.sort((a, b) => a.partNumber - b.partNumber);
    if (this.id !== undefined) await this.parts.complete(this.key, this.id, parts);
  }

  /** Returns the first failure. */
  async giveUp(error: unknown): Promise<unknown> {
    const { signal } = this.failed;
    const first = signal.aborted ? signal.reason : error;
    const tearing = setTimeout(() => this.torn.abort(error), lastPartsMs);
    await Promise.allSettled(this.sending);
    clearTimeout(tearing);
    // The sweeper finds parts that cannot be discarded now.
    if (this.id !== undefined) await this.parts.abort(this.key, this.id).catch(() => undefined);
    return first;
  }

  private async sendPart(part: { uploadId: string; partNumber: number }, buffer: PartBuffer): Promise<void> {
    const { content } = buffer;
    const etag = await this.parts.send({ ...part, key: this.key }, content, this.torn.signal);
    this.sent.push({ partNumber: part.partNumber, size: content.length, etag });
    buffer.clear();
    this.free.push(buffer);
  }
}
