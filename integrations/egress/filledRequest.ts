import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { type Agent, request } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { idleTimeoutMs, ProxyError, passedOn, passedRequest, passedUpgrade } from './connect.ts';
import type { Admitted } from './guard.ts';
import { authorityOf } from './hostName.ts';
import { MaskStream, maskText } from './maskStream.ts';
import type { FilledRequest } from './placeholders.ts';

/** An opened connection to a host, and the secrets that the host could repeat. */
export interface OpenedHost {
  to: Admitted;
  ended: AbortSignal | undefined;
  agent: Agent;
  upstreamAuthorities: readonly string[] | undefined;
  secrets: Set<string>;
}

/** The server closed a reused connection before it answered. */
export class KeptConnectionClosed extends Error {}

/** How long a tunnel holds back bytes that may begin a secret: the client may be waiting for these bytes. */
const quietMs = 100;

/** Forwards the request, and the server's answer with secrets masked. */
export async function forwardFilled(
  req: IncomingMessage,
  res: ServerResponse,
  filled: FilledRequest,
  opened: OpenedHost,
): Promise<void> {
  const outgoing = send(req, filled, passedRequest(filled.headers), opened);
  res.once('close', () => outgoing.destroy());
  const answered = answerTo(outgoing);
  // The server's answer counts, even if the server does not read the whole request.
  pipeline(req, outgoing).catch(() => undefined);
  const { incoming } = await answered;
  await passAnswer(incoming, res, opened);
}

/**
 * Forwards an upgrade, such as a WebSocket. After the server has agreed, bytes pass in both directions, and secrets
 * that it repeats are still masked. If the server does not agree, its answer is passed on like any other.
 */
export async function forwardUpgrade(
  req: IncomingMessage,
  res: ServerResponse,
  client: Duplex,
  head: Buffer,
  filled: FilledRequest,
  opened: OpenedHost,
): Promise<void> {
  const outgoing = send(req, filled, passedUpgrade(filled.headers), opened);
  client.once('close', () => outgoing.destroy());
  const answered = answerTo(outgoing);
  outgoing.end();
  const { incoming, upstream } = await answered;
  if (upstream === undefined) return passAnswer(incoming, res, opened);
  upstream.on('error', () => upstream.destroy());
  res.detachSocket(client as Socket);
  writeHead(client, incoming, opened);
  if (head.length > 0) upstream.write(head);
  const signal = opened.ended;
  const masked = new MaskStream(opened.secrets, { quietMs });
  await Promise.all([pipeline(client, upstream, { signal }), pipeline(upstream, masked, client, { signal })]).catch(
    () => {
      client.destroy();
      upstream.destroy();
    },
  );
}

/** Passes on an HTTP answer, whatever its status, to a request or an upgrade. */
async function passAnswer(incoming: IncomingMessage, res: ServerResponse, opened: OpenedHost): Promise<void> {
  res.writeHead(incoming.statusCode ?? 502, maskedHeaders(passedOn(incoming.headers), opened));
  // Send the headers at once, in Latin-1 as they came: `flushHeaders` would write them as UTF-8.
  res.write('', 'latin1');
  const isPlain = ['', 'identity'].includes(incoming.headers['content-encoding'] ?? '');
  if (isPlain && opened.secrets.size > 0) await pipeline(incoming, new MaskStream(opened.secrets), res);
  else await pipeline(incoming, res);
}

function send(req: IncomingMessage, filled: FilledRequest, headers: IncomingHttpHeaders, opened: OpenedHost) {
  const { to, agent, ended, upstreamAuthorities } = opened;
  const { expect: _, 'sec-websocket-extensions': extensions, ...others } = headers;
  const hasSecrets = opened.secrets.size > 0;
  const outgoing = request({
    host: to.address,
    port: to.port,
    // The name is in the handshake, and the certificate is checked against it.
    servername: to.host,
    ...(upstreamAuthorities !== undefined && { ca: [...upstreamAuthorities] }),
    method: req.method,
    path: filled.path,
    headers: {
      ...others,
      host: authorityOf(to.host, to.port, 443),
      // A compressed answer could not be searched for the secret.
      ...(hasSecrets && { 'accept-encoding': 'identity' }),
      ...(!hasSecrets && extensions !== undefined && { 'sec-websocket-extensions': extensions }),
    },
    setHost: false,
    agent,
    timeout: idleTimeoutMs,
    ...(ended !== undefined && { signal: ended }),
  });
  outgoing.once('timeout', () => outgoing.destroy(new Error('The server says nothing.')));
  return outgoing;
}

/** A server's answer, and the connection if the server has agreed to an upgrade. */
interface Answer {
  incoming: IncomingMessage;
  upstream?: Duplex;
}

async function answerTo(outgoing: ClientRequest): Promise<Answer> {
  const answered = Promise.withResolvers<Answer>();
  outgoing.once('response', (incoming) => answered.resolve({ incoming })).once('error', answered.reject);
  outgoing.once('upgrade', (incoming, upstream, head) => {
    if (head.length > 0) upstream.unshift(head);
    answered.resolve({ incoming, upstream });
  });
  // Errors after the answer would otherwise be uncaught.
  outgoing.on('error', () => undefined);
  try {
    return await answered.promise;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (/CERT|SIGNATURE|SELF_SIGNED|ERR_TLS|ERR_SSL/.test(code))
      throw new ProxyError(502, `The server does not prove who it is (${code}).`);
    // The server had closed a reused connection. The client retries if its connection ends, but not after an answer.
    throw outgoing.reusedSocket ? new KeptConnectionClosed() : error;
  }
}

function maskedHeaders(headers: IncomingHttpHeaders, { secrets }: OpenedHost): IncomingHttpHeaders {
  const masked = (text: string) => maskText(text, secrets);
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map(masked) : masked(value ?? ''),
    ]),
  );
}

function writeHead(client: Duplex, incoming: IncomingMessage, opened: OpenedHost): void {
  const { statusCode = 101, headers } = incoming;
  const lines = Object.entries(maskedHeaders(headers, opened)).flatMap(([name, value]) =>
    [value ?? ''].flat().map((each) => `${name}: ${each}\r\n`),
  );
  client.write(`HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode] ?? ''}\r\n${lines.join('')}\r\n`, 'latin1');
}
