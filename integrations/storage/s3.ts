import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { S3Client } from '@aws-sdk/client-s3';
import type { Config } from '../../config/index.ts';

export const connectTimeoutMs = 3_000;
/** The limit of one request, including the bytes of a part on a slow line. */
const requestTimeoutMs = 10 * 60_000;
/** A reader that takes nothing for this long is cut off. It can resume with a range. */
export const stalledReaderMs = 5 * 60_000;
/** Some stores need long to assemble the parts of a large object, and are silent meanwhile. */
const completeMs = 30_000;
const completeBytesPerMs = 16 * 1_024;
/** Each upload and download holds a socket, slow ones for long. */
const maxSockets = 1_000;
/** An idle connection may have died unnoticed. */
const idleSocketMs = 10_000;

type Storage = Config['storage'];

/** The two S3 clients of this process. They share their connections. */
export interface S3Clients {
  /** For uploads, and for requests with small bodies both ways. Gives up a request after `silenceMs` without bytes. */
  client: S3Client;
  /** For requests that may be silent for long: a download with a slow reader, a store that assembles parts. */
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

/** A client that only signs links and never connects. `endpoint` is where clients reach the store. */
export function createSigner(storage: Storage, endpoint: string): S3Client {
  return new S3Client(addressOf(storage, endpoint));
}

/** The address of a store and the credentials for it. */
export function addressOf(
  { region, accessKeyId, secretAccessKey }: Pick<Storage, 'region' | 'accessKeyId' | 'secretAccessKey'>,
  endpoint: string | undefined,
) {
  return {
    region,
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    // Without keys, the SDK uses the machine's own role.
    ...(accessKeyId !== undefined &&
      secretAccessKey !== undefined && { credentials: { accessKeyId, secretAccessKey } }),
    maxAttempts: 3,
    // The signature already covers a hash of each part.
    requestChecksumCalculation: 'WHEN_REQUIRED' as const,
    responseChecksumValidation: 'WHEN_REQUIRED' as const,
    // Waiting for `100 Continue` costs a round trip and, in the SDK, a new connection for each part.
    expectContinueHeader: false,
  };
}

/** For a small request with a small answer: all attempts together take at most `silenceMs`. */
export function soon(silenceMs: number) {
  return { requestTimeout: silenceMs / 2, abortSignal: AbortSignal.timeout(silenceMs) };
}

/** For a download: how long the store may take to begin its answer. */
export function toBegin(silenceMs: number) {
  return { requestTimeout: silenceMs / 2 };
}

/** How long a store may take to assemble this many bytes. */
export function toComplete(bytes: number) {
  return { requestTimeout: completeMs + bytes / completeBytesPerMs };
}
