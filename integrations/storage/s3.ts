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
  return new S3Client({
    region,
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    // Absent keys: the SDK looks for the machine's own role.
    ...(accessKeyId !== undefined &&
      secretAccessKey !== undefined && { credentials: { accessKeyId, secretAccessKey } }),
    maxAttempts: 3,
    // The signature covers a hash of each part already.
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
}
