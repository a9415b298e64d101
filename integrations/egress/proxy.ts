import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { DomainError } from '../../models/errors.ts';
import type { EgressGuard, EgressOwner } from './guard.ts';
import { authorityOf } from './hostName.ts';
import { parseAuthority } from './hostPattern.ts';

/** Who may use the proxy: the owner that these credentials stand for, or undefined. */
export type Authenticate = (
  user: string,
  password: string,
) => EgressOwner | undefined | Promise<EgressOwner | undefined>;

const connectTimeoutMs = 10_000;
const idleTimeoutMs = 10 * 60_000;
/** RFC 9110 §7.6.1: headers of one connection, which are not passed on. */
const hopByHop = new Set(
  'connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
);

/**
 * The forward proxy through which programs of users reach the network (git, browsers, sandboxes): CONNECT, and plain
 * HTTP by absolute URL. Each destination is admitted by the guard, and the address that it admitted is dialled. The
 * caller listens where its programs are.
 */
export function createEgressProxy(guard: EgressGuard, authenticate: Authenticate): Server {
  const ownerOf = async (req: IncomingMessage): Promise<EgressOwner> => {
    const [scheme = '', encoded = ''] = (req.headers['proxy-authorization'] ?? '').split(' ');
    const [user = '', password = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(/:(.*)/s);
    const owner = scheme.toLowerCase() === 'basic' ? await authenticate(user, password) : undefined;
    if (owner === undefined) throw new ProxyError(407, 'The proxy needs your credentials.');
    return owner;
  };

  const server = createServer((req, res) => {
    forward(guard, ownerOf, req, res).catch((error: unknown) => {
      const { status, text } = describe(error);
      if (res.headersSent) return res.destroy();
      res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...challenge(status) }).end(`${text}\n`);
    });
  });
  server.on('connect', (req, client, head) => {
    tunnel(guard, ownerOf, req, client, head).catch((error: unknown) => {
      const { status, text } = describe(error);
      const headers = Object.entries(challenge(status)).map(([name, value]) => `${name}: ${value}\r\n`);
      client.end(`HTTP/1.1 ${status} Refused\r\n${headers.join('')}content-type: text/plain\r\n\r\n${text}\n`);
    });
  });
  return server;
}

type OwnerOf = (req: IncomingMessage) => Promise<EgressOwner>;

async function tunnel(
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
  const { address } = await guard.admit({ host: to.host, port: to.port }, owner);
  const upstream = await dial(address, to.port);
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  if (head.length > 0) upstream.write(head);
  // When either side fails, the other is closed.
  const { ended: signal } = owner;
  await Promise.all([pipeline(client, upstream, { signal }), pipeline(upstream, client, { signal })]).catch(() => {
    client.destroy();
    upstream.destroy();
  });
}

async function forward(guard: EgressGuard, ownerOf: OwnerOf, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const owner = await ownerOf(req);
  const url = URL.parse(req.url ?? '');
  if (url?.protocol !== 'http:') throw new ProxyError(400, 'This is a proxy: ask it for an http:// URL, or CONNECT.');
  const { host, port, address } = await guard.admit({ host: url.hostname, port: Number(url.port || 80) }, owner);
  const headers = { ...passedOn(req.headers), host: authorityOf(host, port, 80) };
  const outgoing = request({
    host: address,
    port,
    method: req.method,
    path: `${url.pathname}${url.search}`,
    headers,
    setHost: false,
    agent: false,
    timeout: idleTimeoutMs,
    signal: owner.ended,
  });
  outgoing.once('timeout', () => outgoing.destroy(new Error('The server says nothing.')));
  res.once('close', () => outgoing.destroy());
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve).once('error', reject);
  });
  await Promise.all([
    pipeline(req, outgoing),
    answered.then((incoming) => {
      res.writeHead(incoming.statusCode ?? 502, passedOn(incoming.headers));
      return pipeline(incoming, res);
    }),
  ]);
}

function dial(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: connectTimeoutMs });
    socket.once('timeout', () => socket.destroy(new Error('No connection in time.')));
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject).on('error', () => socket.destroy());
      socket.setTimeout(idleTimeoutMs);
      resolve(socket);
    });
  });
}

function passedOn(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !named.has(name)));
}

function challenge(status: number): Record<string, string> {
  return status === 407 ? { 'proxy-authenticate': 'Basic realm="atrium"' } : {};
}

class ProxyError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** What the program behind the proxy reads. */
function describe(error: unknown): { status: number; text: string } {
  if (error instanceof ProxyError) return { status: error.status, text: error.message };
  if (error instanceof DomainError && error.code === 'EGRESS_REFUSED') return { status: 403, text: error.message };
  if (error instanceof DomainError) return { status: 502, text: error.message };
  return { status: 502, text: 'The server cannot be reached.' };
}
