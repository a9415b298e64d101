import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError } from '../../config/index.ts';
import { areas as allAreas } from '../registry.ts';
import { createApp, type Surface } from './app.ts';
import type { ApiDeps } from './deps.ts';
import { ownHosts } from './ownHosts.ts';
import { SlowClients } from './slowClients.ts';
import { refuseTwoHosts, refuseUnreadable } from './unreadable.ts';
import { answerUpgrades, wantsWebSocket } from './upgrade.ts';

/** How long open requests and streams may continue after the server begins to close. */
const defaultGraceMs = 30_000;
const idleSweepMs = 100;
/** How often Node checks for late headers. A request is cut at most this long after its limit. */
const looksAtHeadersMs = 1_000;
/**
 * Longer than the 60 s after which the usual load balancers drop an idle connection. The balancer must close it first.
 */
const keepAliveTimeoutMs = 65_000;

export interface RunningApi {
  /** Contains the actual port, even when a free one was chosen. */
  url: string;
  /**
   * Reports not ready but answers as before for `drainMs`, while load balancers switch to other servers. Then it takes
   * no new connections, tells streams to end, waits for open requests, and cuts the rest after `graceMs`.
   */
  close(options?: { drainMs?: number; graceMs?: number }): Promise<void>;
}

/** Starts the API. Resolves when it answers; throws a ConfigError when its port is taken. */
export function startApi(...made: Parameters<typeof makeApi>): Promise<RunningApi> {
  return makeApi(...made).open();
}

/** Makes the API. It answers no request until it is opened. */
export function makeApi(
  runtime: Omit<ApiDeps, 'draining' | 'closing'>,
  surface?: Surface,
): { open(): Promise<RunningApi> } {
  const draining = new AbortController();
  const closing = new AbortController();
  const deps = { ...runtime, draining: draining.signal, closing: closing.signal };
  const app = createApp(deps, surface);
  const hostsOf = ownHosts(surface?.areas ?? allAreas, deps);
  const { patience, maxConnections } = runtime.config.http;
  const slow = new SlowClients(patience);
  // No limit for whole requests, since an upload may take long. `SlowClients` watches them.
  const limits = {
    shouldUpgradeCallback: wantsWebSocket,
    requestTimeout: 0,
    headersTimeout: patience.headersMs,
    connectionsCheckingInterval: looksAtHeadersMs,
  };
  const server = createServer(limits, (req, res) => {
    slow.watch(req, res);
    // A kept-alive connection would keep the server open.
    if (closing.signal.aborted) res.setHeader('connection', 'close');
    if (refuseTwoHosts(req, res, runtime.logger)) return;
    const hosts = hostsOf(req);
    if (hosts === undefined) app(req, res);
    else hosts.handle(req, res);
  });
  const upgrades = answerUpgrades(server, app, runtime.logger, hostsOf);
  refuseUnreadable(server, runtime.logger);
  server.maxConnections = maxConnections;
  server.keepAliveTimeout = keepAliveTimeoutMs;

  let closed: Promise<void> | undefined;
  const running: Omit<RunningApi, 'url'> = {
    close({ drainMs = 0, graceMs = defaultGraceMs } = {}) {
      draining.abort();
      closed ??= (async () => {
        if (drainMs > 0) await delay(drainMs);
        closing.abort();
        await drain(server, graceMs, upgrades);
        slow.close();
      })();
      return closed;
    },
  };
  return {
    async open() {
      await listen(server, runtime.config.http);
      return { ...running, url: urlOf(server, runtime.config.http.host) };
    },
  };
}

/** Throws a ConfigError that names the setting to change. */
export function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  settings = { host: 'ATRIUM_HOST', port: 'ATRIUM_PORT' },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') {
        reject(new ConfigError(`Port ${port} is taken. Stop what uses it, or set ${settings.port} to another one.`));
      } else if (error.code === 'EACCES') {
        reject(
          new ConfigError(`Port ${port} needs more rights than this user has. Set ${settings.port} to one above 1023.`),
        );
      } else if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') {
        reject(new ConfigError(`This machine has no address ${host}. Set ${settings.host} to one it has.`));
      } else reject(error);
    });
    server.listen(port, host, resolve);
  });
}

async function drain(server: Server, graceMs: number, upgrades: { cut(): void }): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const sweep = setInterval(() => server.closeIdleConnections(), idleSweepMs);
  const cut = setTimeout(() => {
    server.closeAllConnections();
    upgrades.cut();
  }, graceMs);
  await ended;
  clearInterval(sweep);
  clearTimeout(cut);
}

const localHosts = new Set(['127.0.0.1', '::1', '0.0.0.0', '::', 'localhost']);

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = localHosts.has(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}
