import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { S3Client } from '@aws-sdk/client-s3';
import type { Config } from '../../config/index.ts';

export const connectTimeoutMs = 3_000;
/** Of one request, a part's bytes included. */
export const requestTimeoutMs = 60_000;
/** Putting the parts of a large object together takes some stores minutes. */
export const completeTimeoutMs = 10 * 60_000;
/** A download whose reader or whose store has stalled; its reader goes on with a range. */
export const stalledTimeoutMs = 5 * 60_000;
/** Each upload and download under way holds one, slow ones for long. */
const maxSockets = 1_000;

/** The client that everything in this process shares. `endpoint` is where clients reach the store, for links that they follow. */
export function createS3Client(storage: Config['storage'], endpoint = storage.endpoint): S3Client {
  const { region, accessKeyId, secretAccessKey } = storage;
  const agent = { keepAlive: true, maxSockets };
  const client = new S3Client({
    region,
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    // Absent keys: the SDK looks for the machine's own role.
    ...(accessKeyId !== undefined &&
      secretAccessKey !== undefined && { credentials: { accessKeyId, secretAccessKey } }),
    maxAttempts: 3,
    // The way is protected, or the signature covers a hash of each part; a further checksum would be computed in JavaScript.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Waiting for leave to send a part costs a round trip and, in the SDK, a new connection for each part.
    expectContinueHeader: false,
    requestHandler: {
      httpAgent: new HttpAgent(agent),
      httpsAgent: new HttpsAgent(agent),
      connectionTimeout: connectTimeoutMs,
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: stalledTimeoutMs,
    },
  });
  if (isProtected(endpoint)) leavePayloadsUnsigned(client);
  return client;
}

/** TLS keeps bytes as they are on their way, and nobody else is on a loopback interface. */
function isProtected(endpoint: string | undefined): boolean {
  if (endpoint === undefined) return true;
  const { protocol, hostname } = new URL(endpoint);
  return protocol === 'https:' || /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/**
 * Signs requests without a hash of their bytes, as S3 allows: each byte is hashed twice less, once here and once in the store. On an
 * unprotected way the signature goes on to cover them.
 */
function leavePayloadsUnsigned(client: S3Client): void {
  client.middlewareStack.add(
    (next) => (args) => {
      (args.request as { headers: Record<string, string> }).headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD';
      return next(args);
    },
    { step: 'build', name: 'leavePayloadUnsigned', tags: ['UNSIGNED_PAYLOAD'] },
  );
}
