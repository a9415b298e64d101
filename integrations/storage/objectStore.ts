import type { Readable } from 'node:stream';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListMultipartUploadsCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { Config } from '../../config/index.ts';
import { DomainError } from '../../models/errors.ts';
import { contentDisposition, servedContentType } from './disposition.ts';
import { storageCall } from './errors.ts';
import { type Inspected, Inspection, type InspectOptions } from './inspect.ts';
import { PartUploads } from './partUploads.ts';
import { createS3Client } from './s3.ts';
import { sendObject } from './sendObject.ts';

/** The first and the last byte wanted. */
export interface ByteRange {
  start: number;
  end: number;
}

/** The bytes of everything, in one bucket, by flat keys. What a key belongs to is in MySQL. Failures are DomainErrors. */
export class ObjectStore {
  readonly parts: PartUploads;
  private readonly client: S3Client;
  /** Signs for the address at which clients reach the store. */
  private readonly signer: S3Client;
  private readonly bucket: string;

  constructor(storage: Config['storage']) {
    this.client = createS3Client(storage);
    this.signer = storage.publicEndpoint === undefined ? this.client : createS3Client(storage, storage.publicEndpoint);
    this.bucket = storage.bucket;
    this.parts = new PartUploads(this.client, this.signer, this.bucket);
  }

  /** Stores all bytes under a key, in memory that does not grow with them. When it rejects, nothing of them is being sent. */
  async write(key: string, bytes: AsyncIterable<Buffer>, options: InspectOptions): Promise<Inspected> {
    const inspection = new Inspection(options);
    await storageCall(sendObject(this.client, { bucket: this.bucket, key }, inspection.pass(bytes)));
    return inspection.result();
  }

  async read(key: string, range?: ByteRange): Promise<Readable> {
    const Range = range && `bytes=${range.start}-${range.end}`;
    const { Body } = await storageCall(
      this.client.send(new GetObjectCommand({ Bucket: this.bucket, Key: key, Range })),
    );
    return Body as Readable;
  }

  /** A link with which anybody can read the object for a while. */
  async presignRead(
    key: string,
    file: { name: string; contentType: string },
    options: { expiresInSeconds: number; download: boolean },
  ): Promise<string> {
    const command = new GetObjectCommand({
      Bucket: this.bucket,
      Key: key,
      ResponseContentDisposition: contentDisposition(file, options.download),
      ResponseContentType: servedContentType(file.contentType),
    });
    return storageCall(getSignedUrl(this.signer, command, { expiresIn: options.expiresInSeconds }));
  }

  /** Removes objects, at most 1,000, and whatever parts of them are there. Absent ones are fine. */
  async remove(keys: readonly string[], options: { alsoParts: boolean }): Promise<void> {
    if (keys.length === 0) return;
    if (options.alsoParts) for (const key of keys) await this.removeParts(key);
    const command = new DeleteObjectsCommand({
      Bucket: this.bucket,
      Delete: { Objects: keys.map((Key) => ({ Key })), Quiet: true },
    });
    const { Errors = [] } = await storageCall(this.client.send(command));
    if (Errors.length > 0) {
      throw new DomainError('unavailable', 'STORAGE_UNAVAILABLE', 'The object store does not remove objects.');
    }
  }

  /** Found by their key, since a process may have been killed before it knew their id. */
  private async removeParts(key: string): Promise<void> {
    const list = new ListMultipartUploadsCommand({ Bucket: this.bucket, Prefix: key });
    const { Uploads = [] } = await storageCall(this.client.send(list));
    for (const { Key, UploadId } of Uploads) {
      if (Key === key && UploadId !== undefined) await this.parts.abort(key, UploadId);
    }
  }

  /** Rejects unless the bucket answers. */
  async check(): Promise<void> {
    await storageCall(this.client.send(new HeadBucketCommand({ Bucket: this.bucket })));
  }

  close(): void {
    this.client.destroy();
    if (this.signer !== this.client) this.signer.destroy();
  }
}
