import { request } from 'node:http';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../computers/hostClient.ts';
import { ConnectionLost } from './cdp/connection.ts';
import { endpointFile } from './chromium.ts';
import { browserError } from './failures.ts';
import type { BrowserSpec, DevToolsEndpoint } from './types.ts';

/** Longer than any port and path. */
const maxFileBytes = 200;
const maxListBytes = 16 * 1_048_576;

export function ended(cause?: unknown): DomainError {
  return browserError('BROWSER_ENDED', 'The browser of this session has ended.', { cause });
}

/** Where Chromium says that it listens. Throws 502 `BROWSER_ENDED`. */
export async function readEndpoint(
  client: HostClient,
  { profileFolder }: BrowserSpec,
  signal: AbortSignal,
): Promise<DevToolsEndpoint> {
  let text = '';
  try {
    const { body } = await client.readFile(`${profileFolder}/${endpointFile}`, {
      range: { start: 0, end: maxFileBytes - 1 },
      signal,
    });
    for await (const chunk of body.setEncoding('latin1')) text += chunk;
  } catch (error) {
    throw error instanceof DomainError && gone.has(error.code) ? ended(error) : error;
  }
  const [, port, path] = /^(\d{1,5})\n(\/devtools\/browser\/[\w-]{1,100})\s*$/.exec(text) ?? [];
  if (port === undefined || path === undefined) throw ended();
  return { port: Number(port), path };
}

const gone = new Set(['FILE_NOT_FOUND', 'RANGE_NOT_SATISFIABLE', 'NOT_A_FILE', 'PORT_INVALID', 'PORT_NOT_LISTENING']);

/** A connection there. Throws 502 `BROWSER_ENDED`. */
export async function dialEndpoint(client: HostClient, { port }: DevToolsEndpoint, signal: AbortSignal) {
  try {
    return await client.dialPort(port, { signal });
  } catch (error) {
    throw error instanceof DomainError && gone.has(error.code) ? ended(error) : error;
  }
}

/** What the endpoint answers to a GET: undefined where that is not JSON. Throws what a connection does. */
export async function getFromEndpoint(
  client: HostClient,
  endpoint: DevToolsEndpoint,
  path: string,
  signal: AbortSignal,
): Promise<unknown> {
  const stream = await dialEndpoint(client, endpoint, signal);
  try {
    return await new Promise((resolve, reject) => {
      const headers = { host: `127.0.0.1:${endpoint.port}`, connection: 'close' };
      const asked = request({ path, headers, createConnection: () => stream, signal });
      asked.once('error', reject).end();
      // Nobody has offered that; without a listener, nothing would be heard any more.
      asked.once('upgrade', () => reject(wrong()));
      asked.once('response', (response) => {
        let length = 0;
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => {
          length += chunk.length;
          if (length > maxListBytes) response.destroy(wrong());
          else chunks.push(chunk);
        });
        response.once('error', reject).once('end', () => resolve(parse(Buffer.concat(chunks).toString())));
      });
    });
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof DomainError ? error : new ConnectionLost('The connection failed.', { cause: error });
  } finally {
    stream.destroy();
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function wrong(cause?: unknown): DomainError {
  return browserError('BROWSER_ANSWERED_WRONGLY', 'What answers as this browser is not Chromium.', { cause });
}
