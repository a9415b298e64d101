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

/** A host that a connection was opened to, and the secrets that it could repeat. */
export interface OpenedHost {
  to: Admitted;
  ended: AbortSignal | undefined;
  agent: Agent;
  upstreamAuthorities: readonly string[] | undefined;
  secrets: Set<string>;
}

/** Of a server, before it has answered. */
export class KeptConnectionClosed extends Error {}

/** How long a tunnel holds back what may become a secret: its other side waits for all that the server has said. */
const quietMs = 100;

/** Sends the request on, and what the server answers back, without the secrets that it repeats. */
export async function forwardFilled(
  req: IncomingMessage,
  res: ServerResponse,
  filled: FilledRequest,
  opened: OpenedHost,
): Promise<void> {
  const outgoing = send(req, filled, passedRequest(filled.headers), opened);
  res.once('close', () => outgoing.destroy());
  const answered = answerTo(outgoing);
  // What the server says counts, also when it does not read the request to its end.
  pipeline(req, outgoing).catch(() => undefined);
  const { incoming } = await answered;
  await passAnswer(incoming, res, opened);
}

/**
 * For WebSockets and what else leaves HTTP. Once the server has agreed, bytes pass, still without the secrets that it
 * repeats. A server that does not agree answers as it answers any other request.
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

/** The one way of an answer that is HTTP, whatever its status and whatever was asked for. */
async function passAnswer(incoming: IncomingMessage, res: ServerResponse, opened: OpenedHost): Promise<void> {
  res.writeHead(incoming.statusCode ?? 502, maskedHeaders(passedOn(incoming.headers), opened));
  // At once, and as they came: `flushHeaders` would write them as UTF-8.
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
      // What is compressed could not be looked through for the secret.
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

/** What a server answers, and the connection to it where it has left HTTP by that. */
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
  // After the answer too.
  outgoing.on('error', () => undefined);
  try {
    return await answered.promise;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (/CERT|SIGNATURE|SELF_SIGNED|ERR_TLS|ERR_SSL/.test(code))
      throw new ProxyError(502, `The server does not prove who it is (${code}).`);
    // The server had closed a connection that was kept: clients try again after that, but not after an answer.
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
