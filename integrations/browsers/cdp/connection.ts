import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { z } from 'zod';
import type { DevToolsEndpoint } from './endpoint.ts';
import {
  type AnswerTo,
  commands,
  type EventName,
  type EventOf,
  events,
  type Method,
  type ParamsOf,
} from './protocol.ts';

/** Larger than a picture of the largest size, even if the picture is noise. */
export const maxMessageBytes = 48 * 1_048_576;
const handshakeMs = 10_000;

/** Chromium has refused a command. Its message may name paths of the computer, so tenants never see it. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
}

/** The connection has ended. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** A message does not follow the protocol. */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation';
}

/** A message is longer than `maxMessageBytes`. */
export class MessageTooLong extends Error {
  override readonly name = 'MessageTooLong';
}

interface Waiting {
  answer: z.ZodType;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

type Listener<E extends EventName> = (event: EventOf<E>, sessionId: string | undefined) => void;

/** A WebSocket to a DevTools endpoint, on a stream to its port. It is not open yet. The stream ends when it closes. */
export function socketOn(stream: Duplex, { port, path }: DevToolsEndpoint): WebSocket {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
    createConnection: (() => stream) as never,
    perMessageDeflate: false,
    handshakeTimeout: handshakeMs,
    maxPayload: maxMessageBytes,
  });
  socket.once('close', () => stream.destroy());
  return socket;
}

/** Our own connection to the DevTools endpoint of a Chromium: it sends commands and hears events. */
export class CdpConnection {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, Waiting>();
  /** Each tab has a few listeners, and a connection may have many tabs. */
  readonly #events = new EventEmitter().setMaxListeners(0);
  #count = 0;
  #end: unknown;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer, isBinary) => {
      try {
        if (isBinary) throw new Error('A message is binary.');
        this.#take(JSON.parse(data.toString()) as Record<string, unknown>);
      } catch (error) {
        // This catches a stack overflow too, when the message is nested too deeply.
        this.#close(new ProtocolViolation('A message does not follow the protocol.', { cause: error }));
      }
    });
    socket.on('error', (error) => this.#close(endOf(error)));
    socket.on('close', () => this.#close(new ConnectionLost('The connection has ended.')));
  }

  /** Opens a connection on a stream. The signal ends both. Throws what {@link send} does. */
  static async open(stream: Duplex, endpoint: DevToolsEndpoint, signal: AbortSignal): Promise<CdpConnection> {
    const socket = socketOn(stream, endpoint);
    const connection = new CdpConnection(socket);
    const cut = () => connection.#close(signal.reason);
    signal.addEventListener('abort', cut, { once: true });
    socket.once('close', () => signal.removeEventListener('abort', cut));
    if (signal.aborted) cut();
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('close', () => reject(connection.#end));
    });
    return connection;
  }

  /**
   * Throws {@link CommandRefused}, {@link ConnectionLost}, {@link ProtocolViolation}, {@link MessageTooLong}, or the
   * signal’s reason.
   */
  send<M extends Method>(method: M, params: ParamsOf<M>, sessionId?: string): Promise<AnswerTo<M>> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const id = ++this.#count;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { answer: commands[method], resolve: resolve as (result: unknown) => void, reject });
      this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }));
    });
  }

  on<E extends EventName>(name: E, listener: Listener<E>): void {
    this.#events.on(name, listener);
  }

  off<E extends EventName>(name: E, listener: Listener<E>): void {
    this.#events.off(name, listener);
  }

  /** Throws if the message does not follow the protocol. */
  #take({ id, method, params, result, error, sessionId }: Record<string, unknown>): void {
    if (typeof id === 'number') {
      const waiting = this.#waiting.get(id);
      if (error !== undefined) waiting?.reject(new CommandRefused(String((error as Error).message)));
      else waiting?.resolve(waiting.answer.parse(result));
      // Not earlier: if the answer is malformed, the connection ends, and this caller must get that error.
      this.#waiting.delete(id);
    } else if (typeof method !== 'string') throw new Error('The message is neither an answer nor an event.');
    else if (this.#events.listenerCount(method) > 0) {
      const event = events[method as EventName].parse(params);
      this.#events.emit(method, event, typeof sessionId === 'string' ? sessionId : undefined);
    }
  }

  #close(reason: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = reason ?? new ConnectionLost('The connection was closed.');
    for (const { reject } of this.#waiting.values()) reject(this.#end);
    this.#waiting.clear();
    this.#events.removeAllListeners();
    this.#socket.terminate();
  }
}

/** Reads the error codes of `ws`. */
function endOf(error: Error): Error {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
    return new MessageTooLong('A message is too long.', { cause: error });
  }
  if (code.startsWith('WS_ERR_')) return new ProtocolViolation('A message is malformed.', { cause: error });
  return new ConnectionLost('The connection failed.', { cause: error });
}
