import { request } from 'node:http';
import { z } from 'zod';
import { bytesOf } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import type { HostClient } from '../../computers/hostClient.ts';
import { endpointFile } from '../chromium.ts';
import { ended, wrong } from '../failures.ts';
import type { BrowserSpec } from '../types.ts';
import { ConnectionLost } from './connection.ts';

/** Longer than any port and path. */
const maxFileBytes = 200;
const maxListBytes = 16 * 1_048_576;

/** Where a Chromium takes DevTools clients, as its computer sees it. */
export interface DevToolsEndpoint {
  port: number;
  /** For example `/devtools/browser/6f…`. */
  path: string;
}

/** Reads where Chromium says that it listens. Throws 502 `BROWSER_ENDED`. */
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
    throw asEnded(error);
  }
  const [, port, path] = /^(\d{1,5})\n(\/devtools\/browser\/[\w-]{1,100})\s*$/.exec(text) ?? [];
  if (port === undefined || path === undefined) throw ended();
  return { port: Number(port), path };
}

/** Opens a connection to the endpoint. Throws 502 `BROWSER_ENDED`. */
export async function dialEndpoint(client: HostClient, { port }: DevToolsEndpoint, signal: AbortSignal) {
  try {
    return await client.dialPort(port, { signal });
  } catch (error) {
    throw asEnded(error);
  }
}

const gone = new Set(['FILE_NOT_FOUND', 'RANGE_NOT_SATISFIABLE', 'NOT_A_FILE', 'PORT_INVALID', 'PORT_NOT_LISTENING']);

function asEnded(error: unknown): unknown {
  return error instanceof DomainError && gone.has(error.code) ? ended(error) : error;
}

const shortText = z.string().max(1_000);
/** DevTools clients ask for this before they connect. We leave out its WebSocket address: ours is another one. */
const version = z.object({
  Browser: shortText,
  'Protocol-Version': shortText,
  'User-Agent': shortText,
  'V8-Version': shortText,
  'WebKit-Version': shortText,
});
export type BrowserVersion = z.infer<typeof version>;

export function readVersion(
  client: HostClient,
  endpoint: DevToolsEndpoint,
  signal: AbortSignal,
): Promise<BrowserVersion> {
  return getFromEndpoint(client, endpoint, '/json/version', version, signal);
}

/** The endpoint’s answer to a GET. Throws 502 `BROWSER_ANSWERED_WRONGLY`, and what a connection throws. */
export async function getFromEndpoint<T>(
  client: HostClient,
  endpoint: DevToolsEndpoint,
  path: string,
  answer: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const stream = await dialEndpoint(client, endpoint, signal);
  try {
    const text = await new Promise<string>((resolve, reject) => {
      const headers = { host: `127.0.0.1:${endpoint.port}`, connection: 'close' };
      const asked = request({ path, headers, createConnection: () => stream, signal });
      asked.once('error', reject).end();
      // We never ask for an upgrade. Without this listener, one would leave us waiting for ever.
      asked.once('upgrade', () => reject(wrong()));
      asked.once('response', (response) => resolve(bytesOf(response, maxListBytes, wrong).then(String)));
    });
    return parsed(text, answer);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof DomainError ? error : new ConnectionLost('The connection failed.', { cause: error });
  } finally {
    stream.destroy();
  }
}

function parsed<T>(text: string, answer: z.ZodType<T>): T {
  try {
    return answer.parse(JSON.parse(text));
  } catch (error) {
    throw wrong(error);
  }
}
