import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { bytesOf } from '../../../../base/async.ts';

/** Where an engine listens. */
export type EngineAddress = { socketPath: string } | { host: string; port: number };

const maxAnswerBytes = 4 * 1_048_576;
const usualTimeoutMs = 30_000;

/** The engine refused with this HTTP status, or did not answer properly (0). */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Parses an address as in `DOCKER_HOST`. Undefined for other schemes, such as ssh. */
export function parseEngineAddress(text: string): EngineAddress | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, port, pathname } = new URL(text);
  if (protocol === 'unix:') return pathname === '' ? undefined : { socketPath: pathname };
  if (protocol !== 'tcp:' && protocol !== 'http:') return undefined;
  return hostname === '' ? undefined : { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || 2375 };
}

/** The requests of the Docker Engine API that computers need. */
export class Engine {
  readonly address: EngineAddress;

  constructor(address: EngineAddress) {
    this.address = address;
  }

  /** Throws an {@link EngineError} if the engine refuses. */
  async ask<T>(method: string, path: string, body?: unknown, { timeoutMs = usualTimeoutMs } = {}): Promise<T> {
    const response = await answerOf(this.#send(method, path, timeoutMs), body);
    const text = await textOf(response);
    const { statusCode: status = 0 } = response;
    if (status >= 400) throw new EngineError(status, messageIn(text) ?? `the engine answered ${status}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** Like `ask`. Undefined if the engine refuses with one of these statuses. */
  async askUnless<T>(statuses: number[], method: string, path: string, body?: unknown): Promise<T | undefined> {
    return this.ask<T>(method, path, body).catch((error: unknown) => {
      if (error instanceof EngineError && statuses.includes(error.status)) return undefined;
      throw error;
    });
  }

  /** Attaches to the standard input and output of a container, which need not run yet. */
  async attach(containerId: string): Promise<Duplex> {
    const path = `/containers/${containerId}/attach?stream=1&stdin=1&stdout=1&stderr=1`;
    const sent = this.#send('POST', path, usualTimeoutMs, { connection: 'Upgrade', upgrade: 'tcp' });
    return new Promise((resolve, reject) => {
      sent.once('upgrade', (_response, socket: Duplex, head: Buffer) => {
        (socket as Duplex & { setTimeout?(ms: number): void }).setTimeout?.(0);
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      answerOf(sent, undefined).then(
        (response) =>
          reject(new EngineError(response.statusCode ?? 0, 'The engine refused the connection to the container.')),
        reject,
      );
    });
  }

  #send(method: string, path: string, timeoutMs: number, headers: Record<string, string> = {}): ClientRequest {
    return request({ ...this.address, method, path, agent: false, headers: { host: 'docker', ...headers } })
      .setTimeout(timeoutMs, function (this: ClientRequest) {
        this.destroy(new EngineError(0, 'The engine does not answer.'));
      })
      .on('error', () => undefined);
  }
}

function answerOf(sent: ClientRequest, body: unknown): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once('response', resolve).once('error', reject);
    if (body === undefined) sent.end();
    else sent.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  return String(await bytesOf(response, maxAnswerBytes, () => new EngineError(0, 'The engine’s answer is too long.')));
}

function messageIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { message?: string }).message?.slice(0, 500);
  } catch {
    return undefined;
  }
}
