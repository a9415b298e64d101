import type { Request } from 'express';
import type { RawData, WebSocket } from 'ws';
import { loggable } from '../../telemetry/loggable.ts';
import { type ConnectionLimits, Throttle } from './connectionLimits.ts';
import type { Allowed } from './stillAllowed.ts';

/**
 * Why the server closes a connection (RFC 6455 §7.4; codes that begin with 44 are ours). CONTRIBUTING.md lists them.
 */
const closeCodes = { closing: 1001, failed: 1011, signedOut: 4401, forbidden: 4403, flooded: 4429 } as const;

/** Above this backlog, `send` asks its caller to wait. */
const highWaterBytes = 64 * 1024;

/** An open WebSocket, as an area sees it. */
export interface Connection {
  /** Aborted once the connection has closed, whichever side closed it. */
  readonly closed: AbortSignal;
  /** Sets the one listener. An error that it throws closes the connection with 1011. */
  onMessage(listener: (data: Buffer, isBinary: boolean) => void): void;
  /**
   * Sends a string as text and a buffer as binary. Returns false when the client lags behind: then wait for `drained`.
   * A client that lags too far is cut off, so a source that does not wait loses its connection instead of filling this
   * process's memory.
   */
  send(data: string | Buffer): boolean;
  /** Sends UTF-8 bytes as a text message. */
  sendText(utf8: Buffer): boolean;
  /** Resolves when the client has caught up or the connection has closed. */
  drained(): Promise<void>;
  /** Stops reading from the client until `resume`. */
  pause(): void;
  resume(): void;
  /** 1000, or an area's own code from 4000 to 4399. */
  close(code: number, reason?: string): void;
}

export interface ConnectionOptions {
  req: Request;
  limits: ConnectionLimits;
  /** Aborted when the server begins to close. */
  closing: AbortSignal;
  isAllowed(): Promise<Allowed>;
  open(connection: Connection): void;
}

/** Supervises an open socket, and hands it to its area. */
export function openConnection(socket: WebSocket, { req, limits, closing, isAllowed, open }: ConnectionOptions): void {
  const closed = new AbortController();
  const throttle = new Throttle(limits.messagesPerSecond, limits.messagesAtOnce);
  const waiting: (() => void)[] = [];
  let isAlive = true;
  let isAsking = false;
  const timers = [
    setInterval(ping, limits.pingIntervalMs),
    setInterval(() => void leaveUnlessAllowed(), limits.authorizationIntervalMs),
  ];
  const stop = () => socket.close(closeCodes.closing, 'The server is closing.');

  function ping(): void {
    // A paused socket emits no pong.
    if (isAlive || socket.isPaused) socket.ping();
    else socket.terminate();
    isAlive = false;
  }

  async function leaveUnlessAllowed(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    // A database that is briefly down closes no connection: the next check decides.
    const allowed = await isAllowed().catch(() => 'yes' as const);
    isAsking = false;
    if (allowed !== 'yes') socket.close(closeCodes[allowed], 'You no longer have access to this connection.');
  }

  function wake(): void {
    if (socket.bufferedAmount > highWaterBytes && socket.readyState === socket.OPEN) return;
    for (const resume of waiting.splice(0)) resume();
  }

  function fail(error: unknown): void {
    req.log.error({ err: loggable(error), requestId: req.id }, 'A connection failed.');
    socket.close(closeCodes.failed, 'Something went wrong on the server.');
  }

  socket.on('pong', () => {
    isAlive = true;
  });
  // ws itself closes a socket that breaks the protocol or a limit. There is nothing to add.
  socket.on('error', () => undefined);
  socket.once('close', () => {
    for (const timer of timers) clearInterval(timer);
    closing.removeEventListener('abort', stop);
    closed.abort();
    wake();
  });
  closing.addEventListener('abort', stop);
  if (closing.aborted) stop();

  function send(data: string | Buffer, binary: boolean): boolean {
    if (socket.readyState !== socket.OPEN) return false;
    // Checked before sending, so that no single message is too large for a client that has kept up. No close frame: it
    // would queue behind the backlog.
    if (socket.bufferedAmount > limits.maxBacklogBytes) {
      socket.terminate();
      return false;
    }
    socket.send(data, { binary }, wake);
    return socket.bufferedAmount <= highWaterBytes;
  }

  const connection: Connection = {
    closed: closed.signal,
    onMessage(listener) {
      socket.on('message', (data, isBinary) => {
        // Drop messages that arrive after the close has begun.
        if (socket.readyState !== socket.OPEN) return;
        if (!throttle.take()) return socket.close(closeCodes.flooded, 'Too many messages.');
        try {
          listener(bytesOf(data), isBinary);
        } catch (error) {
          fail(error);
        }
      });
    },
    send: (data) => send(data, typeof data !== 'string'),
    sendText: (utf8) => send(utf8, false),
    drained() {
      return new Promise((resolve) => {
        waiting.push(resolve);
        wake();
      });
    },
    pause: () => socket.pause(),
    resume() {
      isAlive = true;
      socket.resume();
    },
    close: (code, reason) => socket.close(code, reason),
  };
  try {
    open(connection);
  } catch (error) {
    fail(error);
  }
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}
