import type { Request } from 'express';
import type { RawData, WebSocket } from 'ws';
import { loggable } from '../../telemetry/loggable.ts';
import { type ConnectionLimits, Throttle } from './connectionLimits.ts';
import type { Allowed } from './stillAllowed.ts';

/**
 * Why the server closes a connection (RFC 6455 §7.4; codes that begin with 44 are ours). CONTRIBUTING.md lists them.
 */
export const closeCodes = { closing: 1001, failed: 1011, signedOut: 4401, forbidden: 4403, flooded: 4429 } as const;

/** Above this, `send` asks its caller to wait. */
const highWaterBytes = 64 * 1024;

/** An open WebSocket, as an area sees it. */
export interface Connection {
  /** Aborted when it has closed, whichever side closed it. */
  readonly closed: AbortSignal;
  /** Sets the one listener. An error that it throws closes the connection with 1011. */
  onMessage(listener: (data: Buffer, isBinary: boolean) => void): void;
  /**
   * Sends text, or bytes as a binary message. False when the reader is behind: then wait for `drained`. A reader that
   * is too far behind is cut, so a source that does not wait loses its connection instead of filling this process's
   * memory.
   */
  send(data: string | Buffer): boolean;
  /** The same, as text whose bytes these are. */
  sendText(utf8: Buffer): boolean;
  /** Resolves when the reader has caught up, or the connection has closed. */
  drained(): Promise<void>;
  /** Reads no more from the client until `resume`. */
  pause(): void;
  resume(): void;
  /** 1000, or a code of the area's own from 4000 to 4399. */
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
    // A paused socket emits nothing.
    if (isAlive || socket.isPaused) socket.ping();
    else socket.terminate();
    isAlive = false;
  }

  async function leaveUnlessAllowed(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    // A database that is down for a moment closes nothing: the next check decides.
    const allowed = await isAllowed().catch(() => 'yes' as const);
    isAsking = false;
    if (allowed !== 'yes') socket.close(closeCodes[allowed], 'This is no longer yours to use.');
  }

  function wake(): void {
    if (socket.bufferedAmount > highWaterBytes && socket.readyState === socket.OPEN) return;
    for (const resume of waiting.splice(0)) resume();
  }

  function fail(error: unknown): void {
    req.log.error({ err: loggable(error), requestId: req.id }, 'A connection failed.');
    socket.close(closeCodes.failed, 'Something went wrong here.');
  }

  socket.on('pong', () => {
    isAlive = true;
  });
  // ws closes by itself what breaks the protocol or a limit of its own; there is nothing to add.
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
    // Checked before sending: a message is never too large for a reader that has kept up. A close frame would only
    // queue behind the rest.
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
        // Messages after the close has begun are dropped.
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
