import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../computers/hostClient.ts';
import { encodePng } from './png.ts';
import { ConnectionEnded } from './rfb/byteReader.ts';
import { type Picture, RfbClient, RfbViolation, type Size } from './rfb/rfbClient.ts';
import { scaledDown, shownSize } from './shownSize.ts';
import { missingProgram, startRequest, viewerSocket, type XServer } from './xServer.ts';

const answerMs = 15_000;
const firstLookMs = 10;
const longestLookMs = 100;
const killMs = 10_000;

/** The X server of a session, on a computer that runs. */
export class Desktop {
  readonly #client: HostClient;
  readonly #server: XServer;

  constructor(client: HostClient, server: XServer) {
    this.#client = client;
    this.#server = server;
  }

  /**
   * Starts it, unless it runs, and settles when it takes viewers. Throws 422 `DESKTOPS_UNAVAILABLE` where the computer
   * has no X server, 502 `X_SERVER_ENDED`.
   */
  async start(signal: AbortSignal): Promise<void> {
    await this.#client.own.startProcess(startRequest(this.#server));
    for (let waitMs = firstLookMs; ; waitMs = Math.min(waitMs * 1.4, longestLookMs)) {
      await this.#requireAlive();
      if (await this.#answers(signal)) return;
      await delay(waitMs, undefined, { signal });
    }
  }

  /** Whether it runs still, as far as its computer knows. */
  async isAlive(): Promise<boolean> {
    try {
      return (await this.#client.own.process(this.#server.id)).state === 'running';
    } catch (error) {
      if (error instanceof DomainError && error.code === 'PROCESS_NOT_FOUND') return false;
      throw error;
    }
  }

  /** Ends it with all that it has started; settles when that is done, also where it was not there. */
  async kill(): Promise<void> {
    const { own } = this.#client;
    const deadline = performance.now() + killMs;
    while (await this.isAlive()) {
      if (performance.now() > deadline)
        throw new DomainError('upstreamTimeout', 'DESKTOP_NOT_ENDING', 'It runs still.');
      await own.signalProcess(this.#server.id, 'SIGKILL').catch(whereEnded);
      await delay(firstLookMs);
    }
  }

  /** What it shows, as PNG. Throws 409 `DISPLAY_TOO_LARGE`. */
  async screenshot(): Promise<Buffer> {
    return encodePng(await this.#picture());
  }

  /** The same as models are shown it, with the size of the display itself. */
  async shown(): Promise<Size & { png: Buffer; display: Size }> {
    const picture = await this.#picture();
    const scaled = await scaledDown(picture, shownSize(picture));
    const { width, height } = scaled;
    return {
      width,
      height,
      png: await encodePng(scaled),
      display: { width: picture.width, height: picture.height },
    };
  }

  /** Types and points there, as one of its viewers, who is cut off after `timeoutMs` and where the signal is aborted. */
  drive<T>(
    act: (rfb: RfbClient) => Promise<T>,
    { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
  ): Promise<T> {
    return this.#asClient(act, { signal, timeoutMs });
  }

  #picture(): Promise<Picture> {
    return this.#asClient((rfb) => {
      this.#requireNoLarger(rfb.size);
      return rfb.picture();
    });
  }

  /** Gives its screen another size; answers with the one that it has then. */
  resize(size: Size): Promise<Size> {
    return this.#asClient(async (rfb) => {
      const isDone = await rfb.resize(size);
      if (!isDone) throw new DomainError('unprocessable', 'RESOLUTION_REFUSED', 'The display does not take this size.');
      return rfb.size;
    });
  }

  /** A connection of a viewer, which speaks RFB on it. */
  view(signal: AbortSignal) {
    return this.#client.dialSocket(viewerSocket(this.#server), { signal }).catch(asEnded);
  }

  async #asClient<T>(
    act: (rfb: RfbClient) => Promise<T>,
    { signal, timeoutMs = answerMs }: { signal?: AbortSignal; timeoutMs?: number } = {},
  ): Promise<T> {
    const late = AbortSignal.timeout(timeoutMs);
    const ends = signal === undefined ? late : AbortSignal.any([late, signal]);
    try {
      return await greeted(await this.view(ends), ends, act);
    } catch (error) {
      signal?.throwIfAborted();
      throw failureOf(error, late);
    }
  }

  /** A program inside can make its display larger than anybody has room for. */
  #requireNoLarger({ width, height }: Size): void {
    if (width * height <= this.#server.width * this.#server.height) return;
    const detail = 'A program has made the display larger than the session’s resolution. Resize that.';
    throw new DomainError('conflict', 'DISPLAY_TOO_LARGE', detail);
  }

  async #answers(signal: AbortSignal): Promise<boolean> {
    try {
      const socket = await this.#client.own.dialSocket(viewerSocket(this.#server), { signal });
      return await greeted(socket, signal, async () => true);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ConnectionEnded) return false;
      if (error instanceof DomainError && error.code === 'SOCKET_NOT_LISTENING') return false;
      throw error;
    }
  }

  async #requireAlive(): Promise<void> {
    const { state, exitCode } = await this.#client.own.process(this.#server.id);
    if (state === 'running') return;
    if (exitCode === missingProgram) {
      const detail = 'This computer has no X server: its operator installs TigerVNC, and what docs/desktops.md names.';
      throw new DomainError('unprocessable', 'DESKTOPS_UNAVAILABLE', detail);
    }
    throw ended();
  }
}

/** Does something as a client on this connection, which ends with it, and where the signal is aborted. */
async function greeted<T>(socket: Duplex, signal: AbortSignal, act: (rfb: RfbClient) => Promise<T>): Promise<T> {
  const cut = () => socket.destroy();
  signal.addEventListener('abort', cut, { once: true });
  try {
    return await act(await RfbClient.open(socket));
  } finally {
    signal.removeEventListener('abort', cut);
    socket.destroy();
  }
}

function ended(cause?: unknown): DomainError {
  return new DomainError('upstream', 'X_SERVER_ENDED', 'The X server of this session has ended.', { cause });
}

function asEnded(error: unknown): never {
  throw error instanceof DomainError && error.code === 'SOCKET_NOT_LISTENING' ? ended(error) : error;
}

function failureOf(error: unknown, late: AbortSignal): unknown {
  if (late.aborted) {
    return new DomainError('upstreamTimeout', 'DESKTOP_NOT_ANSWERING', 'The X server does not answer.', {
      cause: error,
    });
  }
  if (error instanceof ConnectionEnded) return ended(error);
  if (!(error instanceof RfbViolation)) return error;
  return new DomainError('upstream', 'DESKTOP_ANSWERED_WRONGLY', `The X server answers wrongly. ${error.message}`, {
    cause: error,
  });
}

function whereEnded(error: unknown): void {
  const codes = ['PROCESS_ENDED', 'PROCESS_NOT_FOUND'];
  if (!(error instanceof DomainError) || !codes.includes(error.code)) throw error;
}
