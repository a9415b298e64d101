import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import type { DevToolsEndpoint } from '../types.ts';
import { type AnswerTo, answers, type EventName, type EventOf, events } from './answers.ts';
import type { Commands, Method } from './commands.ts';
import { socketOn } from './socket.ts';

/** Chromium has refused a command. Its words may name what it runs on, and are not for tenants. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
}

/** The connection has ended. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** What came is not the protocol. */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation';
}

/** More came than anybody has room for. */
export class MessageTooLong extends Error {
  override readonly name = 'MessageTooLong';
}

interface Waiting {
  answer: z.ZodType;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

type Listener<E extends EventName> = (event: EventOf<E>, sessionId: string | undefined) => void;

/** A connection to the DevTools endpoint of a Chromium. */
export class CdpConnection {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, Waiting>();
  /** With a few listeners for each tab. */
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
        // Also where it is nested more deeply than anybody has stack for.
        this.#close(new ProtocolViolation('A message is not of the protocol.', { cause: error }));
      }
    });
    socket.on('error', (error) => this.#close(endOf(error)));
    socket.on('close', () => this.#close(new ConnectionLost('The connection has ended.')));
  }

  /** On a stream, which ends with it. The signal ends both. Throws what {@link send} does. */
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
  send<M extends Method>(method: M, params: Commands[M], sessionId?: string): Promise<AnswerTo<M>> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const id = ++this.#count;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { answer: answers[method], resolve: resolve as (result: unknown) => void, reject });
      this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }));
    });
  }

  on<E extends EventName>(name: E, listener: Listener<E>): void {
    this.#events.on(name, listener);
  }

  off<E extends EventName>(name: E, listener: Listener<E>): void {
    this.#events.off(name, listener);
  }

  close(): void {
    this.#close(new ConnectionLost('The connection was closed.'));
  }

  /** Throws what it cannot make out. */
  #take({ id, method, params, result, error, sessionId }: Record<string, unknown>): void {
    if (typeof id === 'number') {
      const waiting = this.#waiting.get(id);
      if (error !== undefined) waiting?.reject(new CommandRefused(String((error as Error).message)));
      else waiting?.resolve(waiting.answer.parse(result));
      // Not before: where its answer is wrong, the end of the connection is for this one to hear, too.
      this.#waiting.delete(id);
    } else if (typeof method !== 'string') throw new Error('It is neither an answer nor an event.');
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

/** By the codes of `ws`. */
function endOf(error: Error): Error {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
    return new MessageTooLong('A message is too long.', { cause: error });
  }
  if (code.startsWith('WS_ERR_')) return new ProtocolViolation('A message is wrong.', { cause: error });
  return new ConnectionLost('The connection failed.', { cause: error });
}
