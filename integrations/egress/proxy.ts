import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describeFailure, dial, idleTimeoutMs, ProxyError, passedOn, passedRequest } from './connect.ts';
import type { Admitted, EgressGuard, EgressOwner } from './guard.ts';
import { authorityOf } from './hostName.ts';
import { parseAuthority } from './hostPattern.ts';

const hangUpTimeoutMs = 2_000;

/** Returns the owner that these credentials stand for, or undefined. */
export type Authenticate = (
  user: string,
  password: string,
) => EgressOwner | undefined | Promise<EgressOwner | undefined>;

/** Returns the owner of a request. Throws a `ProxyError` to refuse the request. */
export type OwnerOf = (req: IncomingMessage) => Promise<EgressOwner>;

/** A connection that was requested by CONNECT and admitted. The client has not been answered yet. */
export interface Tunnel {
  to: Admitted;
  client: Duplex;
  /** Bytes that the client has already sent. */
  head: Buffer;
  ended: AbortSignal | undefined;
  /** Gets the number of bytes that pass. */
  passed?: EgressOwner['passed'] | undefined;
}

/**
 * The forward proxy through which programs of users reach the network (git, browsers, sandboxes): CONNECT, and plain
 * HTTP by absolute URL. The guard admits each destination, and the admitted address is dialled. The caller decides
 * where the server listens.
 */
export function createEgressProxy(guard: EgressGuard, authenticate: Authenticate): Server {
  return createProxyServer(guard, async (req) => {
    const [scheme = '', encoded = ''] = (req.headers['proxy-authorization'] ?? '').split(' ');
    const [user = '', password = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(/:(.*)/s);
    const owner = scheme.toLowerCase() === 'basic' ? await authenticate(user, password) : undefined;
    if (owner === undefined) throw new ProxyError(407, 'The proxy needs your credentials.');
    return owner;
  });
}

/** The same with another way to find the owner. */
export function createProxyServer(guard: EgressGuard, ownerOf: OwnerOf, limits: ServerOptions = {}): Server {
  const server = createServer(limits, (req, res) => {
    forward(guard, ownerOf, req, res).catch((error: unknown) => {
      const { status, text } = describeFailure(error);
      if (res.headersSent) return res.destroy();
      res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...challenge(status) }).end(`${text}\n`);
    });
  });
  server.on('connect', (req, client, head) => {
    openTunnel(guard, ownerOf, req, client, head).catch((error: unknown) => {
      const { status, text } = describeFailure(error);
      const headers = Object.entries(challenge(status)).map(([name, value]) => `${name}: ${value}\r\n`);
      refuse(client, `HTTP/1.1 ${status} Refused\r\n${headers.join('')}content-type: text/plain\r\n\r\n${text}\n`);
    });
  });
  return server;
}

async function openTunnel(
  guard: EgressGuard,
  ownerOf: OwnerOf,
  req: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<void> {
  client.on('error', () => client.destroy());
  const owner = await ownerOf(req);
  const to = parseAuthority(req.url ?? '');
  if (to?.port === undefined) throw new ProxyError(400, 'CONNECT takes a host and a port.');
  const asked = { host: to.host, port: to.port };
  const own = await owner.own?.(asked);
  if (own !== undefined) {
    using _place = await own.enter?.();
    await owner.record({ ...asked, purpose: owner.purpose, address: null, refusal: null });
    const inside = { ...asked, address: own.host, isException: false };
    using opened = owner.opened?.(inside, true);
    const ended = opened?.ended ?? owner.ended;
    return await joinTunnel({ to: { ...inside, port: own.port }, client, head, ended, passed: owner.passed });
  }
  const admitted = await guard.admit(asked, owner);
  using opened = owner.opened?.(admitted);
  const ended = opened?.ended ?? owner.ended;
  const tunnel = { to: admitted, client, head, ended, passed: owner.passed };
  if (owner.takeOver === undefined || !(await owner.takeOver(tunnel))) await joinTunnel(tunnel);
}

async function joinTunnel({ to, client, head, ended: signal, passed }: Tunnel): Promise<void> {
  const upstream = await dial(to.address, to.port);
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  if (head.length > 0) upstream.write(head);
  if (passed !== undefined) for (const side of [client, upstream]) count(side, passed);
  // When either side fails, the other is closed.
  await Promise.all([pipeline(client, upstream, { signal }), pipeline(upstream, client, { signal })]).catch(() => {
    client.destroy();
    upstream.destroy();
  });
}

function count(side: Readable, passed: (bytes: number) => void): void {
  side.on('data', (bytes: Buffer) => passed(bytes.length));
}

/** Sends the answer. Closes the connection if the client does not do so within two seconds. */
function refuse(client: Duplex, answer: string): void {
  const timer = setTimeout(() => client.destroy(), hangUpTimeoutMs);
  client.once('close', () => clearTimeout(timer));
  client.resume().end(answer);
}

async function forward(guard: EgressGuard, ownerOf: OwnerOf, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const owner = await ownerOf(req);
  const url = URL.parse(req.url ?? '');
  if (url?.protocol !== 'http:') throw new ProxyError(400, 'This is a proxy: ask it for an http:// URL, or CONNECT.');
  const admitted = await guard.admit({ host: url.hostname, port: Number(url.port || 80) }, owner);
  const { host, port, address } = admitted;
  using opened = owner.opened?.(admitted);
  const headers = { ...passedRequest(req.headers), host: authorityOf(host, port, 80) };
  const outgoing = request({
    host: address,
    port,
    method: req.method,
    path: `${url.pathname}${url.search}`,
    headers,
    setHost: false,
    agent: false,
    timeout: idleTimeoutMs,
    signal: opened?.ended ?? owner.ended,
  });
  outgoing.once('timeout', () => outgoing.destroy(new Error('The server says nothing.')));
  res.once('close', () => outgoing.destroy());
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve).once('error', reject);
  });
  if (owner.passed !== undefined) count(req, owner.passed);
  await Promise.all([
    pipeline(req, outgoing),
    answered.then((incoming) => {
      if (owner.passed !== undefined) count(incoming, owner.passed);
      res.writeHead(incoming.statusCode ?? 502, passedOn(incoming.headers));
      return pipeline(incoming, res);
    }),
  ]);
}

function challenge(status: number): Record<string, string> {
  return status === 407 ? { 'proxy-authenticate': 'Basic realm="atrium"' } : {};
}
