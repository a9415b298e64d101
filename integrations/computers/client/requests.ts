import { Agent as HttpAgent, type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { bytesOf } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import type { FileContent } from '../hostClient.ts';
import {
  connectionLost,
  encodeQuery,
  notAnswering,
  notRunning,
  problemOf,
  type Query,
} from '../protocol/holderHttp.ts';
import { HolderAgent } from './holderAgent.ts';

/** How to reach a computer: by its holder's socket, or by its host's address with a token for each request. */
export type ComputerEndpoint =
  | {
      socketPath: string;
      /** Where its processes are stored. They are read from there while the computer does not run. */
      processesDir?: string;
    }
  | { address: string; token: () => Promise<string> | string };

interface RequestOf {
  query?: Query;
  headers?: Record<string, string> | undefined;
  json?: unknown;
  body?: Uint8Array | AsyncIterable<Uint8Array>;
  signal?: AbortSignal | undefined;
  /** Deadline for the whole answer. If set to `undefined`, only silence ends the request. */
  deadlineMs?: number | undefined;
}

const deadlineMs = 30_000;
/** How long a connection may be silent during a transfer. */
export const silenceMs = 60_000;
const maxAnswerBytes = 16 * 1_048_576;

// Each request to a holder gets its own connection: a holder ends with its computer, and accepts connections at once.
const toHolder = new HolderAgent();
const http = new HttpAgent();
const https = new HttpsAgent({ keepAlive: true });

/** Sends requests to a holder, or to the host in front of it. */
export class Requests {
  readonly #endpoint: ComputerEndpoint;

  constructor(endpoint: ComputerEndpoint) {
    this.#endpoint = endpoint;
  }

  async json<T>(method: string, path: string, of: RequestOf = {}): Promise<T> {
    return (await this.answer<T>(method, path, of)).value;
  }

  async answer<T>(method: string, path: string, of: RequestOf = {}): Promise<{ status: number; value: T }> {
    const limitMs = 'deadlineMs' in of ? of.deadlineMs : deadlineMs;
    const deadline = limitMs === undefined ? undefined : AbortSignal.timeout(limitMs);
    try {
      const response = await this.#send(method, path, { ...of, signal: anyOf(of.signal, deadline) });
      const text = await textOf(response);
      return { status: response.statusCode ?? 0, value: (text === '' ? undefined : JSON.parse(text)) as T };
    } catch (error) {
      throw refusalOf(error, of.signal, this.#endpoint);
    }
  }

  async file(query: Query, headers: Record<string, string> | undefined, signal?: AbortSignal): Promise<FileContent> {
    const response = await this.open('GET', '/files', { query, headers, signal });
    const part = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers['content-range'] ?? '');
    return {
      size: Number(part?.[3] ?? response.headers['content-length']),
      mode: Number.parseInt(String(response.headers['x-file-mode']), 8),
      modifiedAt: String(response.headers['x-file-modified']),
      etag: String(response.headers.etag),
      range: part === null ? undefined : { start: Number(part[1]), end: Number(part[2]) },
      body: response,
    };
  }

  /** The response, once its headers are there. The caller reads its body or destroys it. */
  async open(method: string, path: string, of: RequestOf): Promise<IncomingMessage> {
    try {
      return await this.#send(method, path, of);
    } catch (error) {
      throw refusalOf(error, of.signal, this.#endpoint);
    }
  }

  async #send(method: string, path: string, of: RequestOf): Promise<IncomingMessage> {
    // `close` would let the other side close while we send a body, and its answer would be lost.
    const headers = { ...of.headers, connection: 'keep-alive' };
    const { target, send } = await requestTo(this.#endpoint, method, path, { ...of, headers });
    const request = send(target);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.setTimeout(silenceMs, () => request.destroy(new SilentHost()));
      request.on('error', reject).once('response', resolve);
      // If a refusal arrives while the body is being sent, the sending fails. The refusal wins.
      if (of.body === undefined || of.body instanceof Uint8Array) request.end(of.body ?? JSON.stringify(of.json));
      else pipeline(Readable.from(of.body, { objectMode: false }), request).catch(reject);
    });
    const { statusCode = 500 } = response;
    if (statusCode < 400) return response;
    const refusal = problemOf(statusCode, await textOf(response));
    request.destroy();
    throw refusal;
  }
}

/** An upgraded connection. */
export async function dial(endpoint: ComputerEndpoint, path: string, signal?: AbortSignal): Promise<Duplex> {
  const headers = { connection: 'Upgrade', upgrade: 'tcp' };
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new SilentHost()), deadlineMs);
  try {
    const { target, send } = await requestTo(endpoint, 'GET', path, {
      headers,
      signal: anyOf(signal, deadline.signal),
    });
    return await new Promise<Duplex>((resolve, reject) => {
      const request = send(target);
      request.once('error', reject);
      request.once('upgrade', (_, socket, head) => {
        // From here on the caller owns the connection. The signal was for dialling only.
        request.off('error', reject);
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      request.once('response', (response) => {
        textOf(response).then((text) => reject(problemOf(response.statusCode ?? 500, text)), reject);
      });
      request.end();
    });
  } catch (error) {
    throw refusalOf(error, signal, endpoint);
  } finally {
    clearTimeout(timer);
  }
}

async function requestTo(endpoint: ComputerEndpoint, method: string, path: string, of: RequestOf) {
  const headers: Record<string, string> = { ...of.headers };
  if (of.json !== undefined) headers['content-type'] = 'application/json';
  const rest = `${path}${encodeQuery(of.query ?? {})}`;
  const common: RequestOptions = { method, headers, ...(of.signal && { signal: of.signal }) };
  if ('socketPath' in endpoint) {
    const target: RequestOptions = { ...common, socketPath: endpoint.socketPath, path: rest, agent: toHolder };
    return { target, send: requestHttp };
  }
  headers.authorization = `Bearer ${await endpoint.token()}`;
  const base = new URL(endpoint.address);
  const isSecure = base.protocol === 'https:';
  const target: RequestOptions = {
    ...common,
    hostname: base.hostname.replace(/^\[|\]$/g, ''),
    port: base.port,
    path: `${base.pathname.replace(/\/$/, '')}${rest}`,
    agent: isSecure ? https : http,
  };
  return { target, send: isSecure ? requestHttps : requestHttp };
}

class SilentHost extends Error {
  override readonly name = 'SilentHost';
}

const unreachable = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT']);

/** Translates a failure: the caller's own signal, a refusal, or an unreachable computer. */
function refusalOf(error: unknown, signal: AbortSignal | undefined, endpoint: ComputerEndpoint): unknown {
  if (signal?.aborted === true) return signal.reason;
  if (error instanceof DomainError) return error;
  const { code = '', name } = error as NodeJS.ErrnoException;
  if ('address' in endpoint) {
    if (unreachable.has(code)) {
      const detail = 'The computer’s host does not answer.';
      return new DomainError('unavailable', 'HOST_LOST', detail, { retryAfterSeconds: 5, cause: error });
    }
  } else if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return notRunning(error);
  }
  if (error instanceof SilentHost || name === 'TimeoutError' || name === 'AbortError') {
    return notAnswering(error);
  }
  return connectionLost(error);
}

async function textOf(response: IncomingMessage): Promise<string> {
  return String(await bytesOf(response, maxAnswerBytes, () => new Error('The answer of a host is too long.')));
}

function anyOf(...signals: (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = signals.filter((signal) => signal !== undefined);
  return given.length < 2 ? given[0] : AbortSignal.any(given);
}
