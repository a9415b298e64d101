import { request } from 'node:http';
import { bytesOf } from '../../../base/async.ts';

/** How long one request may wait. */
const timeoutMs = 5_000;
/** How much later the daemon has to answer. */
const marginMs = 500;
/** How long the end of a process waits at most, while ever more of its files get into the drive. */
const mostMs = 60_000;
const maxAnswerBytes = 64 * 1_024;

/**
 * Settles when all that programs of the computer have written is in the drive, or when it gets no further. Never
 * rejects: the files get there later, and the computer's `drive` says so.
 */
export async function driveSynced(socketPath: string): Promise<void> {
  const until = Date.now() + mostMs;
  for (let before = Number.POSITIVE_INFINITY; Date.now() < until; ) {
    const pending = await sync(socketPath).catch(() => undefined);
    if (pending === undefined || pending === 0 || pending >= before) return;
    before = pending;
  }
}

/** Returns how many files are not in the drive yet. */
async function sync(socketPath: string): Promise<number> {
  const body = JSON.stringify({ timeoutMs });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const signal = AbortSignal.timeout(timeoutMs + marginMs);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  request({ socketPath, path: '/sync', method: 'POST', headers, signal, agent: false }, (response) => {
    bytesOf(response, maxAnswerBytes, () => new Error('The answer is too long.'))
      .then((bytes) => resolve((JSON.parse(bytes.toString()) as { pendingFiles: number }).pendingFiles))
      .catch(reject);
  })
    .on('error', reject)
    .end(body);
  return promise;
}
