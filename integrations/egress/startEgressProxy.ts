import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import type { EgressGuard, EgressOwner } from './guard.ts';
import { createEgressProxy } from './proxy.ts';

/** One user program's access to the network. Disposal makes its credentials invalid and ends its open connections. */
export interface EgressPassage extends Disposable {
  /** The parts of the proxy's URL, for programs that take them separately, such as browsers. */
  host: string;
  port: number;
  user: string;
  password: string;
  /** The bytes that have passed in both directions. */
  bytes: number;
  /** Whether the access ended because more than `maxBytes` passed. */
  exceeded: boolean;
  /**
   * Variables for programs that read them (git, curl, npm, pip …). They contain the password: keep them out of logs.
   */
  environment: Record<string, string>;
}

export interface RunningEgressProxy extends AsyncDisposable {
  port: number;
  /**
   * Opens access for the owner that `ownerOf` returns; it is called for each request, so that a change of the space's
   * lists takes effect at once. After `maxBytes` in both directions it ends by itself.
   */
  open(ownerOf: () => Promise<EgressOwner>, limits?: { maxBytes?: number }): EgressPassage;
}

interface OpenPassage {
  password: string;
  ownerOf: () => Promise<EgressOwner>;
  ended: AbortSignal;
  passed: (bytes: number) => void;
}

/**
 * Starts the forward proxy for programs of users. It listens on this machine, unless told otherwise. `advertisedHost`
 * is the name by which they reach it, where that differs from the address it listens on.
 */
export async function startEgressProxy(options: {
  guard: EgressGuard;
  listenHost?: string;
  port?: number;
  advertisedHost?: string;
}): Promise<RunningEgressProxy> {
  const { guard, listenHost = '127.0.0.1', advertisedHost = listenHost } = options;
  const passages = new Map<string, OpenPassage>();
  const sockets = new Set<Socket>();

  const server = createEgressProxy(guard, async (user, password) => {
    const passage = passages.get(user);
    if (passage === undefined || !isEqual(password, passage.password)) return undefined;
    return { ...(await passage.ownerOf()), ended: passage.ended, passed: passage.passed };
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(options.port ?? 0, listenHost);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    port,
    open(ownerOf, { maxBytes = Number.POSITIVE_INFINITY } = {}) {
      const [user, password] = [randomBytes(12).toString('hex'), randomBytes(24).toString('hex')];
      const ended = new AbortController();
      const end = () => {
        passages.delete(user);
        ended.abort();
      };
      const url = `http://${user}:${password}@${advertisedHost}:${port}`;
      const passage: EgressPassage = {
        host: advertisedHost,
        port,
        user,
        password,
        bytes: 0,
        exceeded: false,
        environment: environmentOf(url),
        [Symbol.dispose]: end,
      };
      const passed = (bytes: number) => {
        passage.bytes += bytes;
        if (passage.bytes <= maxBytes || ended.signal.aborted) return;
        passage.exceeded = true;
        end();
      };
      passages.set(user, { password, ownerOf, ended: ended.signal, passed });
      return passage;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Programs differ in which variables they read; curl reads `http_proxy` in lower case only. */
function environmentOf(url: string): Record<string, string> {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];
  return {
    ...Object.fromEntries(names.flatMap((name) => [name, name.toLowerCase()]).map((name) => [name, url])),
    NO_PROXY: '',
    no_proxy: '',
  };
}

function isEqual(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
