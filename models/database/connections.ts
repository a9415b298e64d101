import { connect, type Socket } from 'node:net';

/** Where mysql2 wants to connect to; the object is each connection's own, and the connection keeps it. */
interface Target {
  config: { host?: string; port?: number; socketPath?: string };
}

/** A connection of mysql2, of either pool. */
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
 * What a statement fails with whose answer did not come. Like a lost connection it says nothing about whether the
 * statement was carried out.
 */
export function silent(what: string): Error {
  return Object.assign(new Error(what), { code: 'ETIMEDOUT', fatal: true });
}

/**
 * The sockets under both pools. One over which nothing passes for `silenceMs` is destroyed, with the statement that it
 * carried: the server, or the way to it, is frozen, and nobody can know what became of the statement, so the connection
 * is never used again. A server that is at work on a long answer is not silent while rows come.
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
    // Also while it connects, and while what every connection is told first is on its way.
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

  /** Whether an idle connection may be used: not if it is older than the last sign that they lead to nothing good. */
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
    for (const socket of this.#open) socket.destroy(silent('The connections to the database were cut.'));
  }

  /** No connection that is open now is used again; what some of them are still carrying goes on. */
  distrust(): void {
    this.#suspectMs = performance.now();
    this.#onSuspect();
  }

  #giveUp(socket: Socket): void {
    socket.destroy(silent('The database did not answer in time.'));
    // Whatever froze one connection has probably frozen its neighbours.
    this.distrust();
  }
}
