import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Express, Request, RequestHandler, Response, Router } from 'express';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import { DomainError } from '../../base/errors.ts';
import type { Area } from './area.ts';
import { callerOf } from './auth/caller.ts';
import { openConnection } from './connection.ts';
import { ConnectionCounter, type ConnectionLimits } from './connectionLimits.ts';
import type { Operation } from './contract.ts';
import type { RouteDeps } from './deps.ts';
import { whenClosed } from './goneOf.ts';
import { allowedOrigins, refuseForeignPage } from './origins.ts';
import type { OwnHosts } from './ownHosts.ts';
import { createRouter } from './router.ts';
import { stillAllowed } from './stillAllowed.ts';
import { refuseTwoHosts } from './unreadable.ts';

/** The subprotocol that a client offers and the server chooses. */
const protocol = 'atrium';
const credentialEntry = /^bearer\.(.+)$/;

/** The socket and first bytes of a request for a WebSocket, kept as `req.handshake`. */
export interface Handshake {
  socket: Duplex;
  head: Buffer;
}

/** Whether a request asks for a WebSocket. Any other upgrade that a client offers is ignored, as HTTP allows. */
export function wantsWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * Lets the app answer upgrades like requests, so that the same authentication, access table, limits and error handler
 * apply. Upgrades for an area's own host go to that host's handler unchanged. The server must have been made with
 * `shouldUpgradeCallback: wantsWebSocket`. `cut` ends every upgraded socket at once.
 */
export function answerUpgrades(
  server: Server,
  app: Express,
  logger: Logger,
  hostsOf: (req: IncomingMessage) => OwnHosts | undefined = () => undefined,
): { cut(): void } {
  const sockets = new Set<Duplex>();
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // The peer has reset the connection. There is nothing left to do; the close event follows.
    socket.on('error', () => socket.destroy());
    if (refuseTwoHosts(req, socket, logger)) return;
    const hosts = hostsOf(req);
    if (hosts === undefined) takeCredential(req);
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    // A TCP server's sockets are all of this type.
    res.assignSocket(socket as Socket);
    res.once('finish', () => (socket as Socket).destroySoon());
    Object.assign(req, { handshake: { socket, head } });
    if (hosts === undefined) app(req, res);
    else hosts.handle(req, res);
  });
  return {
    cut() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * A browser cannot set `Authorization` on a WebSocket, but it can offer subprotocols: `bearer.<token>` is the
 * credential. It is removed so that later code does not see it there.
 */
function takeCredential({ headers }: IncomingMessage): void {
  const offered = offeredProtocols(headers['sec-websocket-protocol']);
  const others = offered.filter((entry) => !credentialEntry.test(entry));
  const token = offered.map((entry) => credentialEntry.exec(entry)?.[1]).find((found) => found !== undefined);
  if (token !== undefined) headers.authorization ??= `Bearer ${token}`;
  if (others.length > 0) headers['sec-websocket-protocol'] = others.join(', ');
  else delete headers['sec-websocket-protocol'];
}

export function offeredProtocols(header = ''): string[] {
  return header
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** Refuses pages of foreign origins. CORS does not do that for WebSockets. Only browsers send an Origin. */
export function checkOrigin({ config }: Pick<RouteDeps, 'config'>): RequestHandler {
  const isAllowed = allowedOrigins(config.http);
  return (req, _res, next) => {
    if (req.handshake !== undefined) refuseForeignPage(req, isAllowed);
    next();
  };
}

/**
 * Routes for the operations that the contract marks `x-upgrade: websocket`. Throws for an operation without a handler
 * and for a handler without an operation.
 */
export function upgradeRoutes(areas: readonly Area[], deps: RouteDeps, limits: ConnectionLimits): Router {
  const router = createRouter();
  const handlers = new Map(areas.flatMap(({ upgrades = {} }) => Object.entries(upgrades)));
  const operations = deps.contract.operations.filter(({ isUpgrade }) => isUpgrade);
  for (const id of handlers.keys()) {
    if (!operations.some((operation) => operation.id === id))
      throw new Error(`The contract does not mark ${id} as an upgrade.`);
  }
  const servers = new Map([[limits, webSocketServer(limits)]]);
  const serverOf = (given: ConnectionLimits) => {
    const server = servers.get(given) ?? webSocketServer(given);
    servers.set(given, server);
    return server;
  };
  const counter = new ConnectionCounter(limits.perUser);
  for (const operation of operations) {
    const create = handlers.get(operation.id);
    if (create === undefined) throw new Error(`No area takes the upgrade ${operation.id}.`);
    const prepare = create(deps);
    router.get(expressPath(operation), async (req, res) => {
      const { open, spaceId, link } = await prepare(req);
      if (req.handshake === undefined) throw upgradeRequired();
      if (deps.closing.aborted) throw serverClosing();
      requireProtocol(req);
      const leave = counter.enter(link?.userId ?? callerOf(req).userId);
      whenClosed(res, leave);
      const own = link?.limits ?? limits;
      const isAllowed = link === undefined ? stillAllowed(deps, req, spaceId) : () => Promise.resolve('yes' as const);
      const socket = acceptUpgrade(serverOf(own), req, res, req.handshake);
      openConnection(socket, { req, limits: own, closing: deps.closing, isAllowed, open });
    });
  }
  return router;
}

/** Accepts handshakes. It does not listen by itself. */
export function webSocketServer(limits: ConnectionLimits): WebSocketServer {
  return new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.maxMessageBytes,
    handleProtocols: () => protocol,
    // The type declarations lack this option: how long a peer may take to answer a close frame.
    ...{ closeTimeout: limits.closeTimeoutMs },
  });
}

/** Answers 101. Throws 400 `BAD_HANDSHAKE` when the handshake does not follow RFC 6455. */
export function acceptUpgrade(
  server: WebSocketServer,
  req: Request,
  res: Response,
  { socket, head }: Handshake,
): WebSocket {
  let refusal = 'the client has gone';
  let accepted: WebSocket | undefined;
  const refuse = (error: Error) => {
    refusal = error.message;
  };
  const sayId = (headers: string[]) => void headers.push(`x-request-id: ${req.id}`);
  server.on('wsClientError', refuse).on('headers', sayId);
  // All of this is synchronous, so no other handshake can come in between.
  server.handleUpgrade(req, socket, head, (webSocket) => {
    accepted = webSocket;
  });
  server.off('wsClientError', refuse).off('headers', sayId);
  if (accepted === undefined) {
    throw new DomainError('invalid', 'BAD_HANDSHAKE', `The WebSocket handshake is not valid: ${refusal}.`);
  }
  // The log line and the metrics are written when the response closes. Let it close when the WebSocket does.
  res.detachSocket(socket as Socket);
  res.statusCode = 101;
  accepted.once('close', (code) => {
    req.closeCode = code;
    res.emit('close');
  });
  return accepted;
}

function expressPath({ path }: Operation): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

function requireProtocol(req: Request): void {
  const offered = offeredProtocols(req.get('sec-websocket-protocol'));
  if (offered.length === 0 || offered.includes(protocol)) return;
  throw new DomainError('invalid', 'SUBPROTOCOL_UNKNOWN', `Offer the WebSocket subprotocol "${protocol}".`);
}

function upgradeRequired(): Error {
  return Object.assign(new Error('Upgrade required'), { status: 426, headers: { upgrade: 'websocket' } });
}

function serverClosing(): DomainError {
  return new DomainError('unavailable', 'SERVER_CLOSING', 'This server is shutting down. Connect again.', {
    retryAfterSeconds: 1,
  });
}
