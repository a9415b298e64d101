import { Server as HttpServer, type IncomingMessage, ServerResponse } from 'node:http';
import { Agent } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { HostCertificates } from './certificates.ts';
import { describeFailure, idleTimeoutMs, ProxyError } from './connect.ts';
import { forwardFilled, forwardUpgrade, KeptConnectionClosed, type OpenedHost } from './filledRequest.ts';
import type { EgressOwner } from './guard.ts';
import { normaliseHost } from './hostName.ts';
import { fillRequest, isFor, type SecretPlaceholder, textsToMask } from './placeholders.ts';
import type { Tunnel } from './proxy.ts';

export interface SecretGatewayOptions {
  /** Certificates by the authority that computers trust. */
  certificates(): Promise<HostCertificates>;
  /** The current placeholders of a computer. */
  placeholdersOf(computerId: string): Promise<readonly SecretPlaceholder[]>;
  /** Further authorities for the servers’ certificates. */
  upstreamAuthorities?: readonly string[];
  headTimeoutMs?: number;
}

/**
 * Puts secrets into requests of computers. It terminates TLS only for hosts that one of the computer's placeholders is
 * for, as HTTP/1.1, and sends the value to no other host. All other connections stay encrypted for it.
 */
export class SecretGateway {
  readonly #options: SecretGatewayOptions;

  constructor(options: SecretGatewayOptions) {
    this.#options = options;
  }

  /** Serves the tunnel. Returns false if no placeholder is for its host. */
  async takeOver(computerId: string, tunnel: Tunnel, owner: EgressOwner): Promise<boolean> {
    const { certificates, placeholdersOf } = this.#options;
    const find = async () => (await placeholdersOf(computerId)).filter((each) => isFor(each, tunnel.to));
    if ((await find()).length === 0) return false;
    const secureContext = await (await certificates()).contextFor(tunnel.to.host);
    tunnel.client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (tunnel.head.length > 0) tunnel.client.unshift(tunnel.head);
    const client = new TLSSocket(tunnel.client, {
      isServer: true,
      secureContext,
      ALPNProtocols: ['http/1.1'],
      // Another name than the one that was admitted gets no certificate.
      SNICallback: (name, done) => {
        if (normaliseHost(name) === tunnel.to.host) done(null, secureContext);
        else done(new Error('This is another host than the one asked for.'));
      },
    });
    await this.#serve(client, tunnel, owner, find);
    return true;
  }

  async #serve(client: TLSSocket, tunnel: Tunnel, owner: EgressOwner, find: () => Promise<SecretPlaceholder[]>) {
    const { upstreamAuthorities, headTimeoutMs = 30_000 } = this.#options;
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ALPNProtocols: ['http/1.1'] });
    const opened: OpenedHost = { to: tunnel.to, ended: tunnel.ended, agent, upstreamAuthorities, secrets: new Set() };
    const logged = new Set<string>();
    const fill = async (req: IncomingMessage) => {
      const placeholders = await find();
      const filled = await fillRequest({ path: req.url ?? '/', headers: req.headers }, placeholders);
      // Mask all values, not only those that are sent here: another connection may have left one with the server.
      for (const text of await textsToMask(placeholders)) opened.secrets.add(text);
      for (const { name, texts } of filled.used) {
        for (const text of texts) opened.secrets.add(text);
        if (logged.has(name)) continue;
        logged.add(name);
        const { host, port, address } = tunnel.to;
        await owner.record({ host, port, purpose: owner.purpose, address, refusal: null, secret: name });
      }
      return filled;
    };

    const server = new HttpServer();
    server.timeout = idleTimeoutMs;
    // Limits the handshake, each head, and the time between two requests.
    let timer = setTimeout(() => client.destroy(), headTimeoutMs);
    // A client that does not wait for answers has several requests under way.
    let underWay = 0;
    const answered = () => {
      underWay--;
      clearTimeout(timer);
      if (underWay === 0) timer = setTimeout(() => client.destroy(), headTimeoutMs);
    };
    server.on('request', (req: IncomingMessage, res: ServerResponse) => {
      clearTimeout(timer);
      underWay++;
      res.once('close', answered);
      answer(req, res).catch((error: unknown) => fail(res, error));
    });
    server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) => {
      clearTimeout(timer);
      socket.on('error', () => socket.destroy());
      const res = responseOn(socket, req);
      if (res === undefined) return void socket.destroy();
      upgrade(req, res, socket, head).catch((error: unknown) => fail(res, error));
    });
    const answer = async (req: IncomingMessage, res: ServerResponse) => {
      requireHost(req, opened);
      await forwardFilled(req, res, await fill(req), opened);
    };
    const upgrade = async (req: IncomingMessage, res: ServerResponse, socket: Socket, head: Buffer) => {
      requireHost(req, opened);
      await forwardUpgrade(req, res, socket, head, await fill(req), opened);
    };

    // HTTP, an upgrade and two pipelines each listen for its end.
    client.setMaxListeners(30);
    const closed = Promise.withResolvers<void>();
    client.on('error', () => client.destroy()).once('close', closed.resolve);
    const end = () => client.destroy();
    tunnel.ended?.addEventListener('abort', end);
    // The TLS socket does not always notice this.
    tunnel.client.once('close', end);
    server.emit('connection', client);
    await closed.promise;
    tunnel.ended?.removeEventListener('abort', end);
    clearTimeout(timer);
    agent.destroy();
    tunnel.client.destroy();
  }
}

/**
 * Requires that a request names the admitted host. One address may have many hosts, and a server routes the request by
 * this name.
 */
function requireHost({ headers, url = '' }: IncomingMessage, { to }: OpenedHost): void {
  const named = URL.parse(`https://${headers.host ?? ''}`);
  const isSame = named !== null && normaliseHost(named.hostname) === to.host && Number(named.port || 443) === to.port;
  if (!isSame) throw new ProxyError(421, 'The request names another host than the connection.');
  if (!url.startsWith('/') && url !== '*') throw new ProxyError(400, 'A request has a path.');
}

/**
 * The last response on a connection that Node has handed over for an upgrade. Undefined while an earlier response is
 * unfinished, because the client did not wait for it.
 */
function responseOn(socket: Socket, req: IncomingMessage): ServerResponse | undefined {
  const res = new ServerResponse(req);
  try {
    res.assignSocket(socket);
  } catch {
    return undefined;
  }
  res.shouldKeepAlive = false;
  socket.on('drain', () => res.emit('drain'));
  return res.once('finish', () => socket.end());
}

function fail(res: ServerResponse, error: unknown): void {
  if (res.headersSent || error instanceof KeptConnectionClosed) return void res.destroy();
  const { status, text } = describeFailure(error);
  res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' }).end(`${text}\n`);
}
