import type { IncomingMessage } from 'node:http';
import { Readable, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListMultipartUploadsCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import {
  ContentCheck,
  type Contents,
  type Damage,
  damageError,
  damageOf,
  type KnownContent,
} from './checkedContent.ts';
import { DirectPut } from './directPut.ts';
import { DirectRead } from './directRead.ts';
import { contentDisposition, servedContentType } from './disposition.ts';
import { normaliseStorageError, storageCall } from './errors.ts';
import { type Inspected, Inspection, type InspectOptions } from './inspect.ts';
import { PartUploads } from './partUploads.ts';
import { createS3Clients, createSigner, soon, toBegin } from './s3.ts';
import { sendObject } from './sendObject.ts';
import { SharedLooks } from './sharedLooks.ts';
import { watchSilence } from './silence.ts';

/** The first and last byte, both inclusive. */
export interface ByteRange {
  start: number;
  end: number;
}

/** Bytes that are about to arrive from the store. */
export interface OpenObject {
  /** Ends the reader after the last byte. Also resolves if the reader leaves, which is not an error. */
  sendTo(reader: Writable): Promise<void>;
}

/** What is known of an object before it is read. Only a read of the whole object has a check. */
interface Known extends KnownContent {
  check: ContentCheck | undefined;
}

/** Below this, a separate connection costs more than it saves. */
const directFromBytes = 1024 * 1024;
/** Attempts to discard a key's parts. If some are left after that, the object is removed later. */
const partRemovals = 5;
/** A distant store is slow to answer each of the three requests that removing an object's parts costs. */
const removersAtOnce = 8;

/** All stored bytes, in one bucket, by flat keys. MySQL has the owners of the keys. Failures are DomainErrors. */
export class ObjectStore {
  readonly parts: PartUploads;
  readonly client: S3Client;
  readonly direct: DirectPut | undefined;
  private readonly patient: S3Client;
  private readonly silenceMs: number;
  /** Signs links for the address at which clients reach the store. */
  private readonly signer: S3Client;
  readonly bucket: string;
  private readonly contents: Contents | undefined;
  private readonly looks = new SharedLooks();

  /** Without `contents`, reads are not checked against hashes. */
  constructor(storage: Config['storage'], contents?: Contents) {
    this.contents = contents;
    const { client, patient, agents } = createS3Clients(storage);
    this.client = client;
    this.direct = DirectPut.for(storage, { agents, client });
    this.patient = patient;
    this.silenceMs = storage.silenceMs;
    this.signer = storage.publicEndpoint === undefined ? client : createSigner(storage, storage.publicEndpoint);
    this.bucket = storage.bucket;
    this.parts = new PartUploads({
      client,
      patient,
      signer: this.signer,
      bucket: this.bucket,
      silenceMs: this.silenceMs,
    });
  }

  /**
   * Stores all bytes under a key, in constant memory. A chunk's memory may be reused when the next one is requested.
   * When this rejects, no request is under way any more.
   */
  async write(key: string, bytes: AsyncIterable<Buffer>, options: InspectOptions): Promise<Inspected> {
    let unreserved: { reason: unknown } | undefined;
    const reserve: InspectOptions['reserve'] = async (count) => {
      try {
        await options.reserve(count);
      } catch (reason) {
        unreserved = { reason };
        throw reason;
      }
    };
    const inspection = new Inspection({ ...options, reserve });
    try {
      await storageCall(sendObject(this, key, inspection.pass(bytes)));
    } catch (error) {
      // The error comes from the quota, not from the store.
      throw unreserved === undefined ? error : unreserved.reason;
    }
    return inspection.result();
  }

  /**
   * An object's bytes, or a range of them. A whole object is compared with its stored hash: the stream fails with 502
   * `CONTENT_DAMAGED` before its last bytes. A range of a damaged object is refused.
   */
  async read(key: string, range?: ByteRange): Promise<Readable> {
    const known = await this.known(key, range);
    const Range = range && `bytes=${range.start}-${range.end}`;
    const command = new GetObjectCommand({ Bucket: this.bucket, Key: key, Range });
    const sending = storageCall(this.patient.send(command, toBegin(this.silenceMs)));
    const { Body } = await this.noting(key, known, sending);
    const bytes = bytesOf(watchSilence(Body as IncomingMessage, this.silenceMs));
    return Readable.from(this.checked(key, known, bytes), { objectMode: false });
  }

  private async *checked(key: string, known: Known | undefined, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    try {
      yield* known?.check?.pass(bytes) ?? bytes;
    } catch (error) {
      await this.note(key, known, error);
      throw error;
    }
    await this.note(key, known);
  }

  /** Records what a read, or its failure, says about a content, if that is new. */
  private async note(key: string, known: Known | undefined, error?: unknown): Promise<void> {
    if (known === undefined) return;
    const damage = error === undefined ? null : damageOf(error);
    const isNews = damage === null ? known.check?.isRefuted === true : damage !== known.finding;
    if (damage === undefined || !isNews) return;
    // The result of the read stands even if it cannot be recorded.
    await this.contents?.note(key, damage).catch(() => undefined);
  }

  private async noting<T>(key: string, known: Known | undefined, work: Promise<T>): Promise<T> {
    return work.catch(async (error: unknown) => {
      await this.note(key, known, error);
      throw error;
    });
  }

  /**
   * Opens all `length` bytes of an object, or a range of that length, for sending to a reader. A small damaged object
   * is refused here. A large one ends its reader within the last bytes.
   */
  async open(key: string, length: number, range?: ByteRange): Promise<OpenObject> {
    const known = await this.known(key, range);
    if (length >= directFromBytes) {
      const command = new GetObjectCommand({ Bucket: this.bucket, Key: key });
      const link = await storageCall(getSignedUrl(this.client, command, { expiresIn: 60 }));
      const direct = await storageCall(DirectRead.open(link, { length, silenceMs: this.silenceMs }, range));
      if (direct !== undefined) {
        return {
          sendTo: async (reader) => {
            await this.noting(key, known, storageCall(direct.sendTo(reader, known?.check)));
            await this.note(key, known);
          },
        };
      }
    }
    const bytes = await this.read(key, range);
    if (known?.check === undefined || length >= directFromBytes) {
      return { sendTo: (reader) => storageCall(sendStream(bytes, reader)) };
    }
    const whole = await buffer(bytes);
    return { sendTo: (reader) => sendStream(Readable.from([whole], { objectMode: false }), reader) };
  }

  /**
   * Reads a whole object that is suspect, damaged or missing, and records the finding. Null means that it is as it was
   * stored. Concurrent callers share one read, which ends when the last of them leaves.
   */
  async lookAgain(key: string, signal?: AbortSignal): Promise<Damage | null> {
    const known = await this.contents?.find(key);
    return known === undefined || known.finding === null ? null : this.look(key, known, signal);
  }

  private look(key: string, { foundAt }: KnownContent, signal?: AbortSignal): Promise<Damage | null> {
    const name = `${key} ${foundAt?.getTime()}`;
    return this.looks.share(name, (abandoned) => this.readWhole(key, abandoned), signal);
  }

  private async readWhole(key: string, signal: AbortSignal): Promise<Damage | null> {
    try {
      for await (const _bytes of await this.read(key)) signal.throwIfAborted();
      return null;
    } catch (error) {
      const damage = damageOf(error);
      if (damage === undefined) throw error;
      return damage;
    }
  }

  /** Throws if the content is known to be damaged or missing. A suspect is looked at first. */
  private async requireSound(key: string, known: KnownContent | undefined): Promise<void> {
    const damage = known?.finding === 'suspect' ? await this.look(key, known) : (known?.finding ?? null);
    if (damage !== null) throw damageError(damage);
  }

  /** What a read is checked against. A range has no check, but needs a sound object. */
  private async known(key: string, range?: ByteRange): Promise<Known | undefined> {
    const known = await this.contents?.find(key);
    if (known === undefined) return undefined;
    if (range !== undefined) await this.requireSound(key, known);
    return { ...known, check: range === undefined ? new ContentCheck(known) : undefined };
  }

  /** Inspects an object that a client has uploaded, by reading all of it. */
  async inspect(key: string, file: { fileName: string; size: number }, signal: AbortSignal): Promise<Inspected> {
    const inspection = new Inspection({
      fileName: file.fileName,
      maxBytes: file.size,
      // The bytes were counted when the upload began.
      reserve: async () => undefined,
    });
    const reader = new Writable({
      write(chunk: Buffer, _encoding, done) {
        try {
          signal.throwIfAborted();
          inspection.add(chunk);
          done();
        } catch (error) {
          done(error as Error);
        }
      },
    });
    const object = await this.open(key, file.size);
    await object.sendTo(reader).catch((error: unknown) => {
      throw reader.errored ?? error;
    });
    if (reader.errored !== null) throw reader.errored;
    return inspection.result();
  }

  /**
   * A link by which anyone can read the object for a while, as the store has it. Throws if the content is known to be
   * damaged or missing.
   */
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
    await this.requireSound(key, await this.contents?.find(key));
    return storageCall(getSignedUrl(this.signer, command, { expiresIn: options.expiresInSeconds }));
  }

  /**
   * Removes at most 1,000 objects, with their parts if asked. Returns the keys that the store refuses to remove, such
   * as one under a legal hold. Absent objects are fine.
   */
  async remove(keys: readonly string[], options: { alsoParts: boolean }): Promise<string[]> {
    if (keys.length === 0) return [];
    const refused = new Set<string>();
    if (options.alsoParts) {
      const left = [...keys];
      const removeEach = async () => {
        for (let key = left.pop(); key !== undefined; key = left.pop()) {
          if (!(await this.removeParts(key))) refused.add(key);
        }
      };
      await Promise.all(Array.from({ length: removersAtOnce }, removeEach));
    }
    const command = new DeleteObjectsCommand({
      Bucket: this.bucket,
      Delete: { Objects: keys.map((Key) => ({ Key })), Quiet: true },
    });
    const { Errors = [] } = await storageCall(this.client.send(command, soon(this.silenceMs)));
    for (const { Key } of Errors) {
      // An error without a key concerns the whole request.
      if (Key === undefined) {
        throw new DomainError('unavailable', 'STORAGE_UNAVAILABLE', 'The object store does not remove objects.');
      }
      refused.add(Key);
    }
    return [...refused];
  }

  /**
   * Discards a key's parts, and returns whether all are gone. Uploads are found by their key, because a process may
   * have been killed before it knew their id. Only an empty list proves that all are gone: a part on its way may have
   * arrived after the discard.
   */
  private async removeParts(key: string): Promise<boolean> {
    const list = new ListMultipartUploadsCommand({ Bucket: this.bucket, Prefix: key });
    for (let times = 0; times < partRemovals; times++) {
      const { Uploads = [] } = await storageCall(this.client.send(list, soon(this.silenceMs)));
      const ids = Uploads.flatMap(({ Key, UploadId }) => (Key === key ? (UploadId ?? []) : []));
      if (ids.length === 0) return true;
      for (const id of ids) await this.parts.abort(key, id);
    }
    return false;
  }

  /** Rejects unless the bucket answers. */
  async check(): Promise<void> {
    await storageCall(this.client.send(new HeadBucketCommand({ Bucket: this.bucket }), soon(this.silenceMs)));
  }

  close(): void {
    this.client.destroy();
    this.patient.destroy();
    if (this.signer !== this.client) this.signer.destroy();
  }
}

async function sendStream(bytes: Readable, reader: Writable): Promise<void> {
  try {
    await pipeline(bytes, reader);
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

/** An object's bytes. A store that ends in the middle of them causes a DomainError. */
async function* bytesOf(body: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const bytes of body) yield bytes as Buffer;
  } catch (error) {
    throw normaliseStorageError(error);
  }
}
