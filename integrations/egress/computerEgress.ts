import { once } from 'node:events';
import { chmod, chown, lstat, rename, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { idleTimeoutMs, ProxyError } from './connect.ts';
import type { Admitted, EgressGuard, EgressOwner, OwnDestination } from './guard.ts';
import type { Destination } from './hostPattern.ts';
import { OpenConnections } from './openConnections.ts';
import { Pace } from './pace.ts';
import { createProxyServer, type Tunnel } from './proxy.ts';

export interface ComputerEgressOptions {
  guard: EgressGuard;
  /** Called for each request. Returns the space's lists and log; undefined if the computer no longer exists. */
  ownerOf(computerId: string): Promise<EgressOwner | undefined>;
  /** Serves tunnels that need more than joining two sockets, such as those that get a secret. */
  takeOver?(computerId: string, tunnel: Tunnel, owner: EgressOwner): Promise<boolean>;
  /** Resolves a destination of Atrium's own, such as a database, that the computer may reach. */
  ownOf?(computerId: string, to: Destination): Promise<OwnDestination | undefined>;
  maxConnections?: number;
  /** New connections: so many at once, and then so many each second. */
  burst?: number;
  perSecond?: number;
  reviewMs?: number;
  headersTimeoutMs?: number;
}

export interface ComputerSocket {
  computerId: string;
  path: string;
  /**
   * The user who connects, if that is not this process's user. `path` is in a folder of that user, so the socket is
   * made at `draft`, where only this process may write.
   */
  owner?: { uid: number; gid: number; draft: string };
}

interface Opened {
  server: Server;
  sockets: Set<Socket>;
  connections: OpenConnections;
  path: string;
  inode: number;
  /** Settles when it listens. A socket that is closed before that would listen for ever. */
  listening: Promise<void>;
}

/**
 * The way out of computers: a Unix socket for each. The socket tells which computer connects, so programs inside need
 * no password. It runs in the process of the host that runs the computers. When the host restarts, it opens the sockets
 * again: computers keep running, and only their open connections have ended.
 */
export class ComputerEgress implements AsyncDisposable {
  readonly #options: ComputerEgressOptions;
  readonly #open = new Map<string, Opened>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: ComputerEgressOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.review(), options.reviewMs ?? 5_000).unref();
  }

  /** Opens the computer's socket, and replaces one that another process may have left. */
  async open(socket: ComputerSocket): Promise<void> {
    const { computerId, path } = socket;
    await this.close(computerId);
    const opened = this.#serve(computerId, path);
    this.#open.set(computerId, opened);
    opened.listening = this.#listen(opened, socket);
    await opened.listening;
  }

  async #listen(opened: Opened, { path, owner }: ComputerSocket): Promise<void> {
    const { server } = opened;
    // Rename into place: a client finds either the old socket or the new one, which already has its owner.
    const temporary = owner?.draft ?? `${path}.new`;
    await rm(temporary, { force: true });
    server.listen(temporary);
    await once(server, 'listening');
    await chmod(temporary, 0o600);
    if (owner !== undefined) await chown(temporary, owner.uid, owner.gid);
    opened.inode = (await lstat(temporary)).ino;
    await rename(temporary, path);
  }

  /** Closes the computer's socket, and ends its connections. */
  async close(computerId: string): Promise<void> {
    const opened = this.#open.get(computerId);
    if (opened === undefined) return;
    this.#open.delete(computerId);
    await opened.listening.catch(() => undefined); // the caller of `open` handles it
    const { server, sockets, connections, path, inode } = opened;
    connections.endAll();
    const closed = server.listening ? once(server, 'close') : undefined;
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
    // Another process may have opened its own socket there.
    const found = await lstat(path).catch(() => undefined);
    if (found?.ino === inode) await rm(path, { force: true });
  }

  /** Checks all open connections against the lists again. A timer does this every few seconds. */
  async review(): Promise<void> {
    for (const [computerId, { connections }] of [...this.#open]) {
      if (connections.size === 0) continue;
      try {
        await connections.review(await this.#ownerOf(computerId));
      } catch {
        // The database is unreachable. The next review checks again.
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#open.keys()].map((computerId) => this.close(computerId)));
  }

  async #ownerOf(computerId: string): Promise<EgressOwner | undefined> {
    const { ownerOf, ownOf } = this.#options;
    const owner = await ownerOf(computerId);
    if (owner === undefined || ownOf === undefined) return owner;
    return { ...owner, own: (to) => ownOf(computerId, to) };
  }

  #serve(computerId: string, path: string): Opened {
    const { guard, takeOver, maxConnections = 256, burst = 300, perSecond = 50 } = this.#options;
    const connections = new OpenConnections();
    const pace = new Pace(burst, perSecond);
    const headersTimeout = this.#options.headersTimeoutMs ?? 15_000;
    // The head of a request has a time limit. Its body may take any time, as long as bytes move.
    const limits = { headersTimeout, requestTimeout: 0, connectionsCheckingInterval: Math.ceil(headersTimeout / 3) };
    const ownerOfRequest = async () => {
      const waitMs = pace.take();
      if (waitMs === undefined)
        throw new ProxyError(429, 'This computer connects too often: wait a few seconds.', 'EGRESS_BUSY');
      if (waitMs > 0) await setTimeout(waitMs);
      const owner = await this.#ownerOf(computerId);
      if (owner === undefined) throw new ProxyError(403, 'This computer is no more.');
      return {
        ...owner,
        opened: (to: Admitted, isOwn?: boolean) => connections.add(to, isOwn),
        ...(takeOver !== undefined && { takeOver: (tunnel: Tunnel) => takeOver(computerId, tunnel, owner) }),
      };
    };
    const server = createProxyServer(guard, ownerOfRequest, limits);
    server.maxConnections = maxConnections;
    server.setTimeout(idleTimeoutMs);
    const sockets = new Set<Socket>();
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    return { server, sockets, connections, path, inode: -1, listening: Promise.resolve() };
  }
}
