import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { type Problem, presentFailure } from './errors.ts';
import type { Failure } from './failures.ts';

const malformed: Failure = { status: 400, code: 'INVALID_HTTP', detail: 'This is not a valid HTTP/1.1 request.' };

const unclear: Failure = {
  status: 400,
  code: 'HOST_UNCLEAR',
  detail: 'The request names two hosts. Send exactly one.',
};

/** By Node's error codes for unreadable requests. */
const refusals: Record<string, Failure> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'REQUEST_TIMEOUT', detail: 'The request did not arrive in time.' },
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'HEADERS_TOO_LARGE',
    detail: 'The URL and the headers together are larger than 16 KiB.',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    code: 'BODY_TOO_LARGE',
    detail: 'The chunk extensions of the body are too large.',
  },
};

/**
 * Answers input that never became a request with a problem like any other, with an id that is in the log. Node would
 * send a bare status. The connection ends with it, because the start of the next request is unknown.
 */
export function refuseUnreadable(server: Server, logger: Logger): void {
  const underWay = new WeakMap<Duplex, ServerResponse>();
  server.on('request', (req, res) => underWay.set(req.socket, res));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const answer = underWay.get(socket);
    // The client would take a refusal for part of that answer's body.
    const isAnswering = answer?.headersSent === true && !answer.writableFinished;
    if (!socket.writable || error.code === 'ECONNRESET' || isAnswering) return void socket.destroy();
    const refusal = refusals[error.code ?? ''] ?? malformed;
    const requestId = randomUUID();
    const address = (socket as Socket).remoteAddress;
    logger.info({ requestId, status: refusal.status, code: refusal.code, request: { address } }, 'Unreadable request');
    socket.end(messageOf(presentFailure(refusal, { path: '/', id: requestId })));
  });
}

/**
 * Refuses a request that names two hosts (RFC 9112 §3.2) and returns true. Node reports the first one, and a proxy
 * before or behind it may use the other. For an upgrade, `answer` is the socket.
 */
export function refuseTwoHosts(req: IncomingMessage, answer: ServerResponse | Duplex, logger: Logger): boolean {
  const names = req.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host');
  if (names.length < 2) return false;
  const requestId = randomUUID();
  const address = req.socket.remoteAddress;
  const { status, code } = unclear;
  logger.info({ requestId, status, code, request: { address } }, 'Unreadable request');
  const problem = presentFailure(unclear, { path: '/', id: requestId });
  const { head, body } = partsOf(problem);
  if ('writeHead' in answer) answer.writeHead(status, Object.fromEntries(head)).end(body);
  else answer.end(messageOf(problem));
  return true;
}

function messageOf(problem: Problem): string {
  const { head, body } = partsOf(problem);
  const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${problem.status} ${problem.title}\r\n${lines}\r\n${body}`;
}

function partsOf(problem: Problem): { head: [name: string, value: string][]; body: string } {
  const body = JSON.stringify(problem);
  const head: [string, string][] = [
    ['connection', 'close'],
    ['cache-control', 'no-store'],
    ['content-type', 'application/problem+json; charset=utf-8'],
    ['content-length', String(Buffer.byteLength(body))],
    ['x-content-type-options', 'nosniff'],
    ['x-request-id', problem.requestId],
  ];
  return { head, body };
}
