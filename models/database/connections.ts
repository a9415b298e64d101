import { connect, type Socket } from 'node:net';

/** The target of a mysql2 connection. Each connection has its own object and keeps it. */
interface Target {
  config: { host?: string; port?: number; socketPath?: string };
}

/** A connection of mysql2, from either pool. */
interface Connected {
  config: object;
  destroy(): void;
}

interface Wire {
  socket: Socket;
  openedAtMs: number;
}

const keepAliveDelayMs = 10_000;

/**
 * The error of a statement whose answer did not come. Like a lost connection, it does not tell whether the statement
 * was executed.
 */
export function silent(what: string): Error {
  return Object.assign(new Error(what), { code: 'ETIMEDOUT', fatal: true });
}

/**
 * The sockets under both pools. A socket without traffic for `silenceMs` is destroyed together with its statement. The
 * server or the network is frozen and the outcome of the statement is unknown, so the connection is never used again. A
 * server that is sending a long answer is not silent.
 */
export class Connections {
  readonly #silenceMs: number;
  readonly #onSuspect: () => void;
  readonly #wires = new WeakMap<object, Wire>();
  readonly #open = new Set<Socket>();
  #suspectMs = Number.NEGATIVE_INFINITY;

  constructor(options: { silenceMs: number; onSuspect: () => void }) {
    this.#silenceMs = options.silenceMs;
    this.#onSuspect = options.onSuspect;
  }

  /** mysql2's option `stream`. */
  readonly dial = ({ config }: Target): Socket => {
    const { host = 'localhost', port = 3306, socketPath } = config;
    const socket = socketPath === undefined ? connect(port, host) : connect(socketPath);
    socket.setNoDelay(true).setKeepAlive(true, keepAliveDelayMs);
    // Also covers connecting and the session settings that are sent first.
    socket.setTimeout(this.#silenceMs, () => this.#giveUp(socket));
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    this.#wires.set(config, { socket, openedAtMs: performance.now() });
    return socket;
  };

  /** Runs statements on a connection that may be silent for another time than usual. */
  async within<T>(connection: Connected, silenceMs: number, work: () => Promise<T>): Promise<T> {
    const socket = this.#wires.get(connection.config)?.socket;
    socket?.setTimeout(silenceMs);
    try {
      return await work();
    } finally {
      socket?.setTimeout(this.#silenceMs);
    }
  }

  /** Whether an idle connection may be used: only if it was opened after the last call of `distrust`. */
  isTrusted(connection: Connected): boolean {
    const wire = this.#wires.get(connection.config);
    return wire !== undefined && wire.openedAtMs > this.#suspectMs;
  }

  /** Closes an unused connection without asking the server. */
  drop(connection: Connected): void {
    connection.destroy();
    this.#wires.get(connection.config)?.socket.destroy();
  }

  /** Ends every connection at once. */
  destroy(): void {
    for (const socket of this.#open) socket.destroy(silent('The connections to the database were closed.'));
  }

  /** Keeps all connections that are open now from being used again. Statements that they carry continue. */
  distrust(): void {
    this.#suspectMs = performance.now();
    this.#onSuspect();
  }

  #giveUp(socket: Socket): void {
    socket.destroy(silent('The database did not answer in time.'));
    // The cause has probably frozen the neighbouring connections too.
    this.distrust();
  }
}
