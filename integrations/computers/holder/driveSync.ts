import { request } from 'node:http';

/** How long the end of a process waits for its files to get into the drive. */
const timeoutMs = 5_000;
/** How much later the daemon has to answer. */
const marginMs = 500;

/**
 * Settles when all that programs of the computer have written is in the drive, or after some seconds. Never rejects: the
 * files get there later, and the computer's `drive` says so.
 */
export function driveSynced(socketPath: string): Promise<void> {
  const body = JSON.stringify({ timeoutMs });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const signal = AbortSignal.timeout(timeoutMs + marginMs);
  return new Promise((resolve) => {
    request({ socketPath, path: '/sync', method: 'POST', headers, signal, agent: false }, (response) => {
      response.on('error', () => resolve()).once('close', () => resolve());
      response.resume();
    })
      .on('error', () => resolve())
      .end(body);
  });
}
