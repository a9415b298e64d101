import type { Duplex } from 'node:stream';
import { lookUntil } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../computers/hostClient.ts';
import { OwnProgram } from '../computers/processes/ownProgram.ts';
import type { StartProcess } from '../computers/types.ts';
import { encodePng, scaledDown, shownSize } from './picture.ts';
import { type Picture, RfbClient, RfbViolation, type Size } from './rfb/rfbClient.ts';
import { ConnectionEnded } from './rfb/wire.ts';

const answerMs = 15_000;
const startPauses = { firstMs: 10, mostMs: 100 };

/** The parameters for starting a session's X server. */
export interface XServer extends Size {
  /** The id of the session and of its process. */
  id: string;
  /** The number in `DISPLAY`. */
  display: number;
}

/** The X server of a session, on a running computer. */
export class Desktop {
  readonly #client: HostClient;
  readonly #server: XServer;
  readonly #program: OwnProgram;

  constructor(client: HostClient, server: XServer) {
    this.#client = client;
    this.#server = server;
    this.#program = new OwnProgram(client, server.id);
  }

  /**
   * Starts the X server unless it runs, and settles when it accepts viewers. Throws 422 `DESKTOPS_UNAVAILABLE` when the
   * computer has no X server, and 502 `X_SERVER_ENDED`.
   */
  async start(signal: AbortSignal): Promise<void> {
    await this.#client.own.startProcess(startRequest(this.#server));
    const look = async () => {
      await this.#requireAlive();
      return this.#answers(signal);
    };
    await lookUntil(look, Boolean, { ...startPauses, signal });
  }

  /** Whether the X server is still running, as far as its computer knows. */
  isAlive(): Promise<boolean> {
    return this.#program.isAlive();
  }

  /** Kills the X server with everything that it has started. Settles at once when it is not running. */
  async kill(): Promise<void> {
    const notEnding = () => new DomainError('upstreamTimeout', 'DESKTOP_NOT_ENDING', 'The X server is still running.');
    if (await this.isAlive()) await this.#program.kill(notEnding);
  }

  /** A PNG of the screen. Throws 409 `DISPLAY_TOO_LARGE`. */
  async screenshot(): Promise<Buffer> {
    return encodePng(await this.#picture());
  }

  /** The picture of the screen for models, and the size of the display itself. */
  async shown(): Promise<Size & { png: Buffer; display: Size }> {
    const picture = await this.#picture();
    const scaled = await scaledDown(picture, shownSize(picture));
    const display = { width: picture.width, height: picture.height };
    return { width: scaled.width, height: scaled.height, png: await encodePng(scaled), display };
  }

  /** Calls `act` with a connection like a viewer's, which ends after `timeoutMs` or when the signal is aborted. */
  async drive<T>(
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

  /** Changes the size of the screen, and returns its new size. */
  resize(size: Size): Promise<Size> {
    return this.drive(async (rfb) => {
      const isDone = await rfb.resize(size);
      if (!isDone) throw new DomainError('unprocessable', 'RESOLUTION_REFUSED', 'The display does not take this size.');
      return rfb.size;
    });
  }

  /** Opens a viewer's connection, on which the viewer speaks RFB. */
  view(signal: AbortSignal) {
    return this.#client.dialSocket(viewerSocket(this.#server), { signal }).catch((error: unknown) => {
      throw isNotListening(error) ? ended(error) : error;
    });
  }

  #picture(): Promise<Picture> {
    return this.drive((rfb) => {
      const { width, height } = rfb.size;
      if (width * height <= this.#server.width * this.#server.height) return rfb.picture();
      // The picture would take more memory than the session's size allows for.
      const detail = 'A program has made the display larger than the session’s resolution. Resize the session.';
      throw new DomainError('conflict', 'DISPLAY_TOO_LARGE', detail);
    });
  }

  async #answers(signal: AbortSignal): Promise<boolean> {
    try {
      const socket = await this.#client.own.dialSocket(viewerSocket(this.#server), { signal });
      return await greeted(socket, signal, async () => true);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ConnectionEnded || isNotListening(error)) return false;
      throw error;
    }
  }

  async #requireAlive(): Promise<void> {
    const { state, exitCode } = await this.#client.own.process(this.#server.id);
    if (state === 'running') return;
    if (exitCode !== missingProgram) throw ended();
    const detail = 'This computer has no X server. The operator installs TigerVNC as docs/desktops.md says.';
    throw new DomainError('unprocessable', 'DESKTOPS_UNAVAILABLE', detail);
  }
}

/** Whether the X server that shows a browser is running. True for a browser without a desktop. */
export async function isDisplayAlive(
  client: HostClient,
  { desktopSessionId: id, display, width, height }: Size & { desktopSessionId: string | null; display: number | null },
): Promise<boolean> {
  return id === null || display === null || new Desktop(client, { id, display, width, height }).isAlive();
}

/** Greets the server on this connection and calls `act`. The connection ends afterwards, or with the signal. */
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

function isNotListening(error: unknown): boolean {
  return error instanceof DomainError && error.code === 'SOCKET_NOT_LISTENING';
}

function ended(cause?: unknown): DomainError {
  return new DomainError('upstream', 'X_SERVER_ENDED', 'The X server of this session has ended.', { cause });
}

function failureOf(cause: unknown, late: AbortSignal): unknown {
  if (late.aborted) {
    return new DomainError('upstreamTimeout', 'DESKTOP_NOT_ANSWERING', 'The X server does not answer.', { cause });
  }
  if (cause instanceof ConnectionEnded) return ended(cause);
  if (!(cause instanceof RfbViolation)) return cause;
  const detail = `The X server answers wrongly. ${cause.message}`;
  return new DomainError('upstream', 'DESKTOP_ANSWERED_WRONGLY', detail, { cause });
}

/** The exit code of the start script when the computer lacks a program. */
const missingProgram = 127;
/** The limit for the clipboard's text in either direction, in bytes. */
const maxCutText = 262_144;

/** The X server's socket for viewers, as a path on the computer. */
export function viewerSocket({ id }: Pick<XServer, 'id'>): string {
  return `/tmp/.atrium/${id}/rfb`;
}

/**
 * Starts the X server and a window manager, and runs as long as the X server does. Only the computer itself can reach
 * the sockets. The script removes the socket of a killed X server, so that the window manager waits for the new one. If
 * another X server of Atrium has the display, its session was given up when its host was lost, and the host came back:
 * the script kills it. It starts the window manager again when that ends, or cannot start beside another one.
 */
const script = `
for program in Xtigervnc xkbcomp; do
  command -v $program >/dev/null || { echo "$program is missing" >&2; exit ${missingProgram}; }
done
umask 077
mkdir -p /tmp/.X11-unix /tmp/.atrium "$1" && chmod 1777 /tmp/.X11-unix || exit 1
lock=$(cat "/tmp/.X$2-lock" 2>/dev/null | tr -cd 0-9)
held() { [ -n "$lock" ] && kill -0 "$lock" 2>/dev/null; }
if held && grep -qzxF ":$2" "/proc/$lock/cmdline" && grep -qF /tmp/.atrium/ "/proc/$lock/cmdline"; then
  kill -9 "$lock"
  tries=0
  while held && [ $tries -lt 250 ]; do sleep 0.02; tries=$((tries + 1)); done
fi
held || rm -f "/tmp/.X11-unix/X$2"
Xtigervnc ":$2" -geometry "$3" -depth 24 -desktop Atrium -rfbport -1 -rfbunixpath "$1/rfb" -rfbunixmode 0600 \\
  -SecurityTypes None -AlwaysShared -nolisten tcp -nolisten local -MaxCutText ${maxCutText} </dev/null &
server=$!
while [ ! -S "/tmp/.X11-unix/X$2" ] && kill -0 $server 2>/dev/null; do sleep 0.02; done
command -v openbox >/dev/null && while kill -0 $server 2>/dev/null; do
  DISPLAY=":$2" openbox
  sleep 2
done </dev/null &
wait $server
`;

/** The computer starts a process with the same id only once. */
function startRequest({ id, display, width, height }: XServer): StartProcess {
  const folder = viewerSocket({ id }).replace(/\/rfb$/, '');
  return {
    processId: id,
    command: ['/bin/sh', '-c', script, 'desktop', folder, String(display), `${width}x${height}`],
  };
}
