import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, request } from 'node:https';
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
  let incoming: IncomingMessage;
  try {
    incoming = await answered;
  } catch (error) {
    // The server had closed a connection that was kept: clients try again after that, but not after an answer.
    if (outgoing.reusedSocket && !(error instanceof ProxyError)) return void req.socket.destroy();
    throw error;
  }
  res.writeHead(incoming.statusCode ?? 502, maskedHeaders(passedOn(incoming.headers), opened));
  // At once, and as they came: `flushHeaders` would write them as UTF-8.
  res.write('', 'latin1');
  const isPlain = ['', 'identity'].includes(incoming.headers['content-encoding'] ?? '');
  if (isPlain && opened.secrets.size > 0) await pipeline(incoming, new MaskStream(opened.secrets), res);
  else await pipeline(incoming, res);
}

/** For WebSockets and what else leaves HTTP: after the server has agreed, bytes pass as they are. */
export async function answerUpgrade(
  req: IncomingMessage,
  client: Duplex,
  head: Buffer,
  filled: FilledRequest,
  opened: OpenedHost,
): Promise<void> {
  client.on('error', () => client.destroy());
  const outgoing = send(req, filled, passedUpgrade(filled.headers), opened);
  client.once('close', () => outgoing.destroy());
  const agreed = Promise.withResolvers<[IncomingMessage, Duplex, Buffer]>();
  outgoing.once('upgrade', (...args) => agreed.resolve(args));
  outgoing.once('response', (incoming) => {
    writeHead(client, incoming, { ...passedOn(incoming.headers), connection: 'close' }, opened);
    pipeline(incoming, client).catch(() => client.destroy());
  });
  outgoing.once('error', (error) => {
    agreed.reject(error);
    client.destroy();
  });
  outgoing.end();
  const [incoming, upstream, upstreamHead] = await agreed.promise;
  upstream.on('error', () => upstream.destroy());
  writeHead(client, incoming, incoming.headers, opened);
  if (upstreamHead.length > 0) client.write(upstreamHead);
  if (head.length > 0) upstream.write(head);
  const signal = opened.ended;
  await Promise.all([pipeline(client, upstream, { signal }), pipeline(upstream, client, { signal })]).catch(() => {
    client.destroy();
    upstream.destroy();
  });
}

function send(req: IncomingMessage, filled: FilledRequest, headers: IncomingHttpHeaders, opened: OpenedHost) {
  const { to, agent, ended, upstreamAuthorities } = opened;
  const { expect: _, ...others } = headers;
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
      ...(opened.secrets.size > 0 && { 'accept-encoding': 'identity' }),
    },
    setHost: false,
    agent,
    timeout: idleTimeoutMs,
    ...(ended !== undefined && { signal: ended }),
  });
  outgoing.once('timeout', () => outgoing.destroy(new Error('The server says nothing.')));
  return outgoing;
}

async function answerTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  const answered = Promise.withResolvers<IncomingMessage>();
  outgoing.once('response', answered.resolve).once('error', answered.reject);
  // After the answer too.
  outgoing.on('error', () => undefined);
  try {
    return await answered.promise;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!/CERT|SIGNATURE|SELF_SIGNED|ERR_TLS|ERR_SSL/.test(code)) throw error;
    throw new ProxyError(502, `The server does not prove who it is (${code}).`);
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

function writeHead(client: Duplex, incoming: IncomingMessage, headers: IncomingHttpHeaders, opened: OpenedHost): void {
  const lines = Object.entries(maskedHeaders(headers, opened)).flatMap(([name, value]) =>
    [value ?? ''].flat().map((each) => `${name}: ${each}\r\n`),
  );
  client.write(`HTTP/1.1 ${incoming.statusCode} ${incoming.statusMessage}\r\n${lines.join('')}\r\n`, 'latin1');
}
