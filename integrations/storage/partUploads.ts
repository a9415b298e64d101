import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListPartsCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { DomainError } from '../../base/errors.ts';
import { damageOf } from './checkedContent.ts';
import { storageCall } from './errors.ts';
import { type S3Clients, soon, toComplete } from './s3.ts';

/** A part that the store has received. */
export interface StoredPart {
  partNumber: number;
  size: number;
  etag: string;
}

/** Objects that are sent in parts: by us, or by a client directly to the store, with signed links. */
export class PartUploads {
  private readonly client: S3Client;
  private readonly patient: S3Client;
  private readonly signer: S3Client;
  private readonly bucket: string;
  private readonly silenceMs: number;

  constructor(store: Omit<S3Clients, 'agents'> & { signer: S3Client; bucket: string; silenceMs: number }) {
    this.client = store.client;
    this.patient = store.patient;
    this.signer = store.signer;
    this.bucket = store.bucket;
    this.silenceMs = store.silenceMs;
  }

  /** Returns the store's id of the upload. */
  async begin(key: string): Promise<string> {
    const command = new CreateMultipartUploadCommand({ Bucket: this.bucket, Key: key });
    const { UploadId } = await storageCall(this.client.send(command, soon(this.silenceMs)));
    if (UploadId === undefined) throw storeRefused('no upload');
    return UploadId;
  }

  /** A link for one part of exactly this size. The size is signed, so a client cannot send more than was counted. */
  async presign(
    part: { key: string; uploadId: string; partNumber: number; size: number },
    expiresInSeconds: number,
  ): Promise<string> {
    const command = new UploadPartCommand({
      Bucket: this.bucket,
      Key: part.key,
      UploadId: part.uploadId,
      PartNumber: part.partNumber,
      ContentLength: part.size,
    });
    const signableHeaders = new Set(['content-length']);
    return storageCall(getSignedUrl(this.signer, command, { expiresIn: expiresInSeconds, signableHeaders }));
  }

  /** Sends a part, and returns its etag. */
  async send(
    part: { key: string; uploadId: string; partNumber: number },
    bytes: Buffer,
    signal: AbortSignal,
  ): Promise<string> {
    const command = new UploadPartCommand({
      Bucket: this.bucket,
      Key: part.key,
      UploadId: part.uploadId,
      PartNumber: part.partNumber,
      Body: bytes,
    });
    const { ETag } = await storageCall(this.client.send(command, { abortSignal: signal }));
    if (ETag === undefined) throw storeRefused('no etag for a part');
    return ETag;
  }

  /**
   * The parts that have arrived so far, by number. Undefined if an earlier attempt has already completed them to an
   * object of `size` bytes: nothing but the upload is ever stored under its key.
   */
  async list(key: string, uploadId: string, size: number): Promise<StoredPart[] | undefined> {
    try {
      return await this.listLeft(key, uploadId);
    } catch (error) {
      if (isGone(error) && (await this.hasObject(key, size))) return undefined;
      throw error;
    }
  }

  private async listLeft(key: string, uploadId: string): Promise<StoredPart[]> {
    const parts: StoredPart[] = [];
    for (let marker: string | undefined; ; ) {
      const page = await storageCall(
        this.client.send(
          new ListPartsCommand({ Bucket: this.bucket, Key: key, UploadId: uploadId, PartNumberMarker: marker }),
          soon(this.silenceMs),
        ),
      );
      for (const { PartNumber, Size, ETag } of page.Parts ?? []) {
        if (PartNumber !== undefined && ETag !== undefined) {
          parts.push({ partNumber: PartNumber, size: Size ?? 0, etag: ETag });
        }
      }
      if (page.IsTruncated !== true || page.NextPartNumberMarker === undefined) return parts;
      marker = page.NextPartNumberMarker;
    }
  }

  /** Makes one object of the parts. Also resolves if an earlier attempt did this and its answer was lost. */
  async complete(key: string, uploadId: string, parts: readonly StoredPart[]): Promise<void> {
    const command = new CompleteMultipartUploadCommand({
      Bucket: this.bucket,
      Key: key,
      UploadId: uploadId,
      MultipartUpload: { Parts: parts.map(({ partNumber, etag }) => ({ PartNumber: partNumber, ETag: etag })) },
    });
    const bytes = parts.reduce((sum, { size }) => sum + size, 0);
    try {
      await storageCall(this.patient.send(command, toComplete(bytes)));
    } catch (error) {
      if (!isGone(error) || !(await this.hasObject(key, bytes))) throw error;
    }
  }

  private async hasObject(key: string, size: number): Promise<boolean> {
    const command = new HeadObjectCommand({ Bucket: this.bucket, Key: key });
    try {
      return (await storageCall(this.client.send(command, soon(this.silenceMs)))).ContentLength === size;
    } catch (error) {
      if (damageOf(error) === 'missing') return false;
      throw error;
    }
  }

  /** Discards the parts. An upload that is already gone is fine. */
  async abort(key: string, uploadId: string): Promise<void> {
    const command = new AbortMultipartUploadCommand({ Bucket: this.bucket, Key: key, UploadId: uploadId });
    await storageCall(this.client.send(command, soon(this.silenceMs))).catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
  }
}

function isGone(error: unknown): boolean {
  return error instanceof DomainError && error.code === 'UPLOAD_EXPIRED';
}

function storeRefused(what: string): DomainError {
  return new DomainError('upstream', 'STORAGE_REFUSED', `The object store gave ${what}.`);
}
