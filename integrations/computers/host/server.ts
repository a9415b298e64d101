import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Duplex, PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { DomainError } from '../../../base/errors.ts';
import { ofOneConnection } from '../../http/connectionHeaders.ts';
import { dial, Requests, silenceMs } from '../client/requests.ts';
import { refuseUpgrade, send, sendProblem, switching } from '../holder/http/answers.ts';
import { join } from '../protocol/channelStream.ts';
import { notRunning } from '../protocol/holderHttp.ts';
import type { Host } from './host.ts';
import { HostError } from './hostErrors.ts';

interface HostServerOptions {
  host: Pick<Host, 'hostId' | 'drivers' | 'refused' | 'socket' | 'metrics'>;
  /** Returns the computer that a token is for. Throws 401 if the token is not valid. */
  verify: (token: string) => Promise<string>;
  log: (facts: Record<string, unknown>, message: string) => void;
}

export interface HostServer {
  server: Server;
  /** Accepts no more requests and cuts open ones. Computers go on, and readers reconnect. */
  close(): void;
}

const maxConnections = 4_096;
const headersMs = 10_000;
/** Longer than the client's timeout: the client times out first, and knows why. */
const connectionSilenceMs = silenceMs + 5_000;
const keepAliveMs = 30_000;

/** The id is a plain name, and the rest goes to that computer's holder, so no path leads to another computer. */
const target = /^\/(computers|work)\/([\w-]{1,64})([/?][\x21-\x7e]*)?$/;
const bearer = /^Bearer ([\w.-]+)$/i;
const requestHeaders = ['content-type', 'content-length', 'range', 'if-match', 'if-none-match'];

/**
 * The HTTP server through which other processes and machines reach this host's computers. A request has a token for its
 * computer. `/computers/{computerId}` offers its holder's interface, and `/metrics`. `/work/{computerId}` offers the
 * same, and can start Atrium's own processes even if the computer does not run. `GET /` needs no token. It says which
 * host this is, and which drivers it has and lacks.
 */
export function createHostServer(options: HostServerOptions): HostServer {
  const tunnels = new Set<Duplex>();
  // A transfer may take long. Only a silent client is cut.
  const limits = { requestTimeout: 0, headersTimeout: headersMs, connectionsCheckingInterval: headersMs };
  const server = createServer(limits, (req, res) => {
    answer(options, req, res).catch((error: unknown) => {
      if (res.headersSent || res.destroyed) res.destroy();
      else sendProblem(res, refusalOf(options, error));
    });
  });
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    tunnels.add(socket);
    socket.once('close', () => tunnels.delete(socket)).on('error', () => undefined);
    tunnel(options, req, socket, head).catch((error: unknown) => {
      if (!socket.destroyed) refuseUpgrade(socket, refusalOf(options, error));
    });
  });
  server.timeout = connectionSilenceMs;
  server.maxConnections = maxConnections;
  return {
    server,
    close() {
      server.close();
      server.closeAllConnections();
      for (const socket of tunnels) socket.destroy();
    },
  };
}

async function answer(options: HostServerOptions, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { host } = options;
  const { method = '', url } = req;
  if (method === 'GET' && url === '/') {
    const { hostId, drivers, refused } = host;
    // There is no token here, and the reasons name paths, so they are only in the log.
    return send(res, 200, { hostId, drivers, missingDrivers: refused.map(({ name }) => name) });
  }
  // A refused client is cut after the answer.
  res.setHeader('connection', 'close');
  const { computerId, path, purpose } = await admit(options, req);
  // A holder may refuse while a body is still being sent. Closing then would lose the refusal.
  res.setHeader('connection', 'keep-alive');
  if (method === 'GET' && path === '/metrics') return send(res, 200, await host.metrics(computerId));
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  const holder = new Requests({ socketPath: await host.socket(computerId, { purpose }) });
  const given = requestHeaders.map((name) => [name, req.headers[name]]);
  const headers = Object.fromEntries(given.filter(([, value]) => typeof value === 'string'));
  // After a refusal the rest of the body is discarded.
  const body = ['POST', 'PUT'].includes(method) && req.pipe(new PassThrough()).once('close', () => req.resume());
  const response = await holder.open(method, path, { headers, signal: gone.signal, ...(body && { body }) });
  const isDropped = ofOneConnection(response.headers.connection);
  const passed = Object.entries(response.headers).filter(([name]) => !isDropped(name));
  res.writeHead(response.statusCode ?? 200, Object.fromEntries(passed)).flushHeaders();
  await pipeline(response, res);
}

async function tunnel(options: HostServerOptions, req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const { computerId, path } = await admit(options, req);
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  const inside = await dial(
    { socketPath: await options.host.socket(computerId, { running: true }) },
    path,
    gone.signal,
  );
  if (socket.destroyed) return void inside.destroy();
  // The connection may be silent while the other machine is alive, so only keep-alive ends it.
  req.socket.setTimeout(0).setKeepAlive(true, keepAliveMs);
  socket.write(switching);
  if (head.length > 0) socket.unshift(head);
  join(inside, socket);
}

/** The computer of the path. Throws 401 if the token is for another. */
async function admit({ verify }: HostServerOptions, req: IncomingMessage) {
  const [, token = ''] = bearer.exec(req.headers.authorization ?? '') ?? [];
  const [, folder, computerId, rest = '/'] = target.exec(req.url ?? '') ?? [];
  if (computerId === undefined || (await verify(token)) !== computerId) {
    throw new DomainError('unauthenticated', 'INVALID_TOKEN', 'The token is not valid for this computer.');
  }
  const purpose = folder === 'work' ? ('work' as const) : ('files' as const);
  return { computerId, purpose, path: rest.startsWith('/') ? rest : `/${rest}` };
}

function refusalOf({ log }: HostServerOptions, error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof HostError) return notRunning(error);
  log({ err: error }, 'A request for a computer has failed.');
  return new DomainError('unavailable', 'HOST_FAILED', 'The computer’s host has failed.', { retryAfterSeconds: 1 });
}
