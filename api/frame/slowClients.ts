import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { presentFailure } from './errors.ts';
import { describeFailure } from './failures.ts';

type Settings = Config['http']['patience'];

/**
 * How often all exchanges are checked within the shortest patience. A client is cut at most a third of that too late.
 */
const looksPerPatience = 3;

/** A request and its answer, while either is still on its way. */
interface Exchange {
  req: IncomingMessage;
  res: ServerResponse;
  /** Kept here because Node detaches it from a request whose body a pipeline has given up. */
  socket: Socket;
  begunAt: number;
  lookedAt: number;
  /** How long bytes waited for us to read them. */
  oursMs: number;
  received: Progress;
  sent: Progress;
}

interface Progress {
  bytes: number;
  at: number;
}

/**
 * Ends exchanges that a client stalls: a request that does not arrive in time, an upload that stops, and an answer that
 * the client does not read. Node's limit for whole requests would cut long uploads, and Node has none for answers. One
 * timer checks all exchanges.
 */
export class SlowClients {
  readonly #settings: Settings;
  readonly #exchanges = new Set<Exchange>();
  readonly #clock: NodeJS.Timeout;

  constructor(settings: Settings) {
    this.#settings = settings;
    const shortest = Math.min(settings.requestMs, settings.stallMs);
    this.#clock = setInterval(() => this.#look(), Math.max(10, shortest / looksPerPatience)).unref();
  }

  watch(req: IncomingMessage, res: ServerResponse): void {
    const now = performance.now();
    const nothing = { bytes: -1, at: now };
    const times = { begunAt: now, lookedAt: now, oursMs: 0 };
    this.#exchanges.add({ req, res, socket: req.socket, ...times, received: { ...nothing }, sent: { ...nothing } });
  }

  close(): void {
    clearInterval(this.#clock);
  }

  #look(): void {
    const now = performance.now();
    for (const exchange of this.#exchanges) {
      const { req, res, socket } = exchange;
      if (socket.destroyed || (res.closed && req.complete)) this.#exchanges.delete(exchange);
      else if (!req.complete && this.#isLate(exchange, now)) refuse(exchange);
      else if (isStuck(exchange, now, this.#settings.stallMs)) socket.destroy();
    }
  }

  /**
   * An upload may take as long as it needs, provided that bytes arrive whenever we are ready to read. For no request
   * counts the time in which it waits for us: bytes have arrived that we have not read.
   */
  #isLate(exchange: Exchange, now: number): boolean {
    const { req, res, socket, begunAt, received } = exchange;
    const { requestMs, stallMs } = this.#settings;
    const isOurTurn = req.readableLength > 0 && !res.headersSent;
    if (isOurTurn) exchange.oursMs += now - exchange.lookedAt;
    exchange.lookedAt = now;
    if (!isUpload(req)) return now - begunAt - exchange.oursMs >= requestMs;
    if (isOurTurn || socket.bytesRead !== received.bytes) {
      received.bytes = socket.bytesRead;
      received.at = now;
    }
    return now - received.at >= stallMs;
  }
}

/**
 * Operations that stream their bodies are known by their media types. Before its operation is known, a request is not
 * an upload.
 */
function isUpload(req: IncomingMessage & { operation?: { bodyTypes: string[] } }): boolean {
  return req.operation?.bodyTypes.some((type) => streamed.has(type)) ?? false;
}

const streamed = new Set(['multipart/form-data', 'application/octet-stream', '*/*']);

/**
 * Whether bytes wait to be sent and the client has taken none for `stallMs`. Bytes written meanwhile, such as
 * heartbeats, are no progress.
 */
function isStuck({ res, sent }: Exchange, now: number, stallMs: number): boolean {
  const socket = res.socket;
  const waiting = socket?.writableLength ?? 0;
  const taken = (socket?.bytesWritten ?? 0) - waiting;
  if (waiting === 0 || taken !== sent.bytes) {
    sent.bytes = taken;
    sent.at = now;
  }
  return now - sent.at >= stallMs;
}

/** Sends 408 with the reason if no answer has begun. A route that is reading the body sees the connection end. */
function refuse({ req, res, socket }: Exchange): void {
  if (res.headersSent) return void socket.destroy();
  const { id = randomUUID(), path = '' } = req as Partial<Pick<Request, 'id' | 'path'>>;
  const body = JSON.stringify(presentFailure(describeFailure(tooSlow()), { id, path }));
  res.writeHead(408, { 'content-type': 'application/problem+json; charset=utf-8', connection: 'close' });
  res.end(body, () => socket.destroy());
}

function tooSlow(): DomainError {
  return new DomainError('timeout', 'REQUEST_TIMEOUT', 'The request did not arrive in time.');
}
