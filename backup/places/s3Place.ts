import type { Readable } from 'node:stream';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { BackupConfig } from '../../config/backup.ts';
import { addressOf } from '../../integrations/storage/s3.ts';
import { BackupError, DamageError } from '../errors.ts';
import type { Place } from './place.ts';

const connectTimeoutMs = 5_000;
/** Enough to send or receive a few MiB. */
const requestTimeoutMs = 5 * 60_000;
const removedAtOnce = 1_000;

/** Keeps backups in a part of a bucket. It should not be the product's bucket, and best be at another provider. */
export function s3Place(url: URL, s3: BackupConfig['s3']): Place {
  const bucket = url.hostname;
  const folder = url.pathname.replace(/^\/+|\/+$/g, '');
  const root = folder === '' ? '' : `${folder}/`;
  const client = new S3Client({
    ...addressOf(s3, s3.endpoint),
    maxAttempts: 5,
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
    },
  });
  const title = `s3://${bucket}/${root}`;
  const told = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      const { name, message } = error as Error;
      if (name === 'CredentialsProviderError') {
        throw new BackupError(
          `There are no credentials for ${title}: set ATRIUM_BACKUP_S3_ACCESS_KEY_ID and ATRIUM_BACKUP_S3_SECRET_ACCESS_KEY, or give this machine a role.`,
          { cause: error },
        );
      }
      throw new BackupError(`The place for backups ${title} cannot be used: ${message || name}.`, { cause: error });
    }
  };
  return {
    title,
    exists: async () => true,
    async *list(prefix) {
      for (let token: string | undefined; ; ) {
        const command = new ListObjectsV2Command({
          Bucket: bucket,
          Prefix: root + prefix,
          ContinuationToken: token,
        });
        const { Contents = [], NextContinuationToken } = await told(client.send(command));
        for (const { Key } of Contents) if (Key !== undefined) yield Key.slice(root.length);
        token = NextContinuationToken;
        if (token === undefined) return;
      }
    },
    async read(name, mostBytes) {
      const asked = client.send(new GetObjectCommand({ Bucket: bucket, Key: root + name }));
      const found = await told(asked.catch(absent));
      if (found !== undefined && (found.ContentLength ?? Number.POSITIVE_INFINITY) > mostBytes) {
        (found.Body as Readable | undefined)?.destroy();
        throw new DamageError(`${name} in ${title} is damaged: it is too large.`);
      }
      const bytes = found?.Body && (await told(found.Body.transformToByteArray()));
      return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    async write(name, bytes) {
      await told(client.send(new PutObjectCommand({ Bucket: bucket, Key: root + name, Body: bytes })));
    },
    async remove(names) {
      for (let at = 0; at < names.length; at += removedAtOnce) {
        const Objects = names.slice(at, at + removedAtOnce).map((name) => ({ Key: root + name }));
        const command = new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } });
        const { Errors = [] } = await told(client.send(command));
        if (Errors[0] !== undefined) throw new BackupError(`${title} does not remove: ${Errors[0].Message}.`);
      }
    },
    close: () => client.destroy(),
  };
}

function absent(error: { name?: string }): undefined {
  if (error.name !== 'NoSuchKey' && error.name !== 'NotFound') throw error;
}
