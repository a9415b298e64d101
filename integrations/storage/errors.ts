import { S3ServiceException } from '@aws-sdk/client-s3';
import { DomainError } from '../../base/errors.ts';
import { damageError } from './checkedContent.ts';

const retryAfterSeconds = 5;
/** An operator has to make room. */
const retryWhenFullSeconds = 60;
/** The codes of stores for "no room": versitygw, MinIO, and Ceph for a quota. Status 507 means the same. */
const fullErrors = new Set(['InsufficientStorage', 'XMinioStorageFull', 'QuotaExceeded']);

/**
 * Turns an error of the object store into a DomainError. Any failure that is not about one object (the store is down,
 * full, slow, or refuses our keys) is 503: the same request may succeed once an operator has fixed it.
 */
export function normaliseStorageError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof S3ServiceException) {
    switch (error.name) {
      case 'NoSuchKey':
      case 'NotFound':
        return damageError('missing', error);
      case 'NoSuchUpload':
      case 'InvalidPart':
        return new DomainError('gone', 'UPLOAD_EXPIRED', 'The upload was given up. Begin it again.', { cause: error });
    }
    if (fullErrors.has(error.name) || error.$metadata.httpStatusCode === 507) {
      return new DomainError('unavailable', 'STORAGE_FULL', 'The object store has no room left.', {
        retryAfterSeconds: retryWhenFullSeconds,
        cause: error,
      });
    }
  }
  return new DomainError('unavailable', 'STORAGE_UNAVAILABLE', 'The object store does not answer. Try again soon.', {
    retryAfterSeconds,
    cause: error,
  });
}

/** Runs a call to the object store, and turns a failure into a DomainError. */
export async function storageCall<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw normaliseStorageError(error);
  }
}
