import { type IncomingMessage, request as requestHttp } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { whenClosed } from '../../frame/goneOf.ts';
import { type ForwardedBy, requestHeaders, responseHeaders } from './headers.ts';

/** How long an app may take to begin its answer. */
const headersMs = 5 * 60_000;

/**
 * Passes a request to the program behind `inside`, and its answer back, both as streams. `signal` cuts it. Throws only
 * before the response has begun.
 */
export async function forward(req: Request, res: Response, inside: Duplex, by: ForwardedBy, signal: AbortSignal) {
  const cut = () => inside.destroy();
  signal.addEventListener('abort', cut, { once: true });
  whenClosed(res, cut);
  try {
    const answer = await send(req, inside, requestHeaders(req.rawHeaders, by));
    if (answer.upgraded !== undefined) return tunnel(req, res, answer.response, answer.upgraded, signal);
    const { statusCode = 502, statusMessage, rawHeaders } = answer.response;
    res.removeHeader('x-request-id');
    try {
      res.writeHead(statusCode, statusMessage, responseHeaders(rawHeaders));
    } catch (error) {
      throw brokeOff(error as Error); // a status or header that is invalid in HTTP
    }
    res.flushHeaders();
    await pipeline(answer.response, res);
  } catch (error) {
    inside.destroy();
    // A begun answer is cut, so that the browser sees that it is incomplete.
    if (res.headersSent) return void res.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', cut);
  }
}

interface Answer {
  response: IncomingMessage;
  upgraded?: { socket: Duplex; head: Buffer };
}

function send(req: Request, inside: Duplex, headers: string[]): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = requestHttp({ createConnection: () => inside, method: req.method, path: req.url, headers });
    const timer = setTimeout(() => request.destroy(tooLate()), headersMs);
    const settle = (answer: Answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    request.once('response', (response) => settle({ response }));
    request.once('upgrade', (response, socket, head) => settle({ response, upgraded: { socket, head } }));
    request.once('error', (error) => {
      clearTimeout(timer);
      reject(error instanceof DomainError ? error : brokeOff(error));
    });
    if (req.handshake !== undefined) request.end();
    // An app may answer without reading the body to its end.
    else pipeline(req, request).catch(() => undefined);
  });
}

/** Joins both sockets until one of them ends. */
function tunnel(
  req: Request,
  res: Response,
  { rawHeaders }: IncomingMessage,
  { socket: inside, head }: { socket: Duplex; head: Buffer },
  signal: AbortSignal,
): Promise<void> {
  const { handshake } = req;
  if (handshake === undefined) {
    throw brokeOff(new Error('The program answered with an upgrade that the request did not ask for.'));
  }
  const { socket: outside } = handshake;
  res.detachSocket(outside as Socket);
  res.statusCode = 101;
  const lines = responseHeaders(rawHeaders, { isUpgrade: true });
  const named = Array.from({ length: lines.length / 2 }, (_, at) => `${lines[at * 2]}: ${lines[at * 2 + 1]}\r\n`);
  outside.write(`HTTP/1.1 101 Switching Protocols\r\n${named.join('')}\r\n`, 'latin1');
  outside.write(head);
  inside.write(handshake.head);
  const end = () => {
    inside.destroy();
    outside.destroy();
  };
  signal.addEventListener('abort', end, { once: true });
  return new Promise((resolve) => {
    const both = [pipeline(inside, outside), pipeline(outside, inside)];
    void Promise.allSettled(both).then(() => {
      signal.removeEventListener('abort', end);
      end();
      // The log line is written when the response closes.
      res.emit('close');
      resolve();
    });
  });
}

function brokeOff(cause: unknown): DomainError {
  return new DomainError(
    'upstream',
    'PORT_ANSWERED_WRONGLY',
    'The program on this port did not answer with valid HTTP.',
    {
      cause,
    },
  );
}

function tooLate(): DomainError {
  return new DomainError('upstreamTimeout', 'PORT_NOT_ANSWERING', 'The program on this port does not answer.');
}
