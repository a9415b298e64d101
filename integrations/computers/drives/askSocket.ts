import { request } from 'node:http';
import { bytesOf } from '../../../base/async.ts';
import { problemOf } from '../protocol/holderHttp.ts';

/**
 * Sends one JSON request to a program on this machine, by its unix socket. Rejects with the program's problem, or with
 * Node's own error if it does not answer.
 */
export function askSocket<Answer>(
  socketPath: string,
  { method, path, json }: { method: string; path: string; json?: unknown },
  { timeoutMs, maxBytes }: { timeoutMs: number; maxBytes: number },
): Promise<Answer> {
  const body = json === undefined ? '' : JSON.stringify(json);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const signal = AbortSignal.timeout(timeoutMs);
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  request({ socketPath, path, method, headers, signal, agent: false }, (response) => {
    bytesOf(response, maxBytes, () => new Error('The answer is too long.'))
      .then((bytes) => {
        const { statusCode = 500 } = response;
        if (statusCode >= 400) throw problemOf(statusCode, bytes.toString());
        resolve((bytes.length === 0 ? undefined : JSON.parse(bytes.toString())) as Answer);
      })
      .catch(reject);
  })
    .on('error', reject)
    .end(body);
  return promise;
}
