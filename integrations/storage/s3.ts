import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { S3Client } from '@aws-sdk/client-s3';
import type { Config } from '../../config/index.ts';

export const connectTimeoutMs = 3_000;
/** The limit of one request, a part's bytes included, however slow they are. */
const requestTimeoutMs = 10 * 60_000;
/** A reader that takes nothing is cut off; it can resume with a range. */
export const stalledReaderMs = 5 * 60_000;
/** Some stores take long to put a large object's parts together, and are silent in the meantime. */
const completeMs = 30_000;
const completeBytesPerMs = 16 * 1_024;
/** Each upload and download under way holds one, slow ones for long. */
const maxSockets = 1_000;
/** An idle connection may have died unnoticed. */
const idleSocketMs = 10_000;

type Storage = Config['storage'];

/** The two clients that everything in this process shares, over the same connections. */
export interface S3Clients {
  /**
   * Gives up a request when nothing passes for `silenceMs`: for uploads, and for requests with small bodies both ways.
   */
  client: S3Client;
  /** For requests that may rightly be silent: a download with a slow reader, a store at work. */
  patient: S3Client;
  agents: { httpAgent: HttpAgent; httpsAgent: HttpsAgent };
}

export function createS3Clients(storage: Storage): S3Clients {
  const agent = { keepAlive: true, maxSockets, timeout: idleSocketMs };
  const agents = { httpAgent: new HttpAgent(agent), httpsAgent: new HttpsAgent(agent) };
  const clientWith = (socketTimeout: number) =>
    new S3Client({
      ...addressOf(storage, storage.endpoint),
      requestHandler: {
        ...agents,
        connectionTimeout: connectTimeoutMs,
        requestTimeout: requestTimeoutMs,
        throwOnRequestTimeout: true,
        socketTimeout,
      },
    });
  return { client: clientWith(storage.silenceMs), patient: clientWith(stalledReaderMs), agents };
}

/** Signs links; it connects to nothing. `endpoint` is where clients reach the store. */
export function createSigner(storage: Storage, endpoint: string): S3Client {
  return new S3Client(addressOf(storage, endpoint));
}

/** How a store is reached, and by whom. */
export function addressOf(
  { region, accessKeyId, secretAccessKey }: Pick<Storage, 'region' | 'accessKeyId' | 'secretAccessKey'>,
  endpoint: string | undefined,
) {
  return {
    region,
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    // Absent keys: the SDK looks for the machine's own role.
    ...(accessKeyId !== undefined &&
      secretAccessKey !== undefined && { credentials: { accessKeyId, secretAccessKey } }),
    maxAttempts: 3,
    // The signature covers a hash of each part already.
    requestChecksumCalculation: 'WHEN_REQUIRED' as const,
    responseChecksumValidation: 'WHEN_REQUIRED' as const,
    // Waiting for `100 Continue` costs a round trip and, in the SDK, a new connection for each part.
    expectContinueHeader: false,
  };
}

/** A small request with a small answer: all its attempts together take no longer than `silenceMs`. */
export function soon(silenceMs: number) {
  return { requestTimeout: silenceMs / 2, abortSignal: AbortSignal.timeout(silenceMs) };
}

/** A download: how long the store may take to begin its answer. */
export function toBegin(silenceMs: number) {
  return { requestTimeout: silenceMs / 2 };
}

/** How long a store may take to put together so many bytes. */
export function toComplete(bytes: number) {
  return { requestTimeout: completeMs + bytes / completeBytesPerMs };
}
