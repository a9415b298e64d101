import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { Problem } from './errors.ts';

interface Refusal {
  status: number;
  code: string;
  detail: string;
}

const malformed: Refusal = { status: 400, code: 'INVALID_HTTP', detail: 'This is not a request of HTTP/1.1.' };

const unclear: Refusal = { status: 400, code: 'HOST_UNCLEAR', detail: 'A request names one host, and this names two.' };

/** By the codes that Node gives what it cannot read. */
const refusals: Record<string, Refusal> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: 'REQUEST_TIMEOUT', detail: 'The request did not arrive in time.' },
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'HEADERS_TOO_LARGE',
    detail: 'The URL and the headers together are larger than 16 KiB.',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    code: 'BODY_TOO_LARGE',
    detail: 'The chunks of the body say too much.',
  },
};

/**
 * Answers what never became a request as everything else is answered: by a problem with an id that is in the log. Node
 * would send a bare status. The connection ends with it, for nobody knows where the next request begins.
 */
export function refuseUnreadable(server: Server, logger: Logger): void {
  const underWay = new WeakMap<Duplex, ServerResponse>();
  server.on('request', (req, res) => underWay.set(req.socket, res));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const answer = underWay.get(socket);
    // What follows the head of an answer would be taken for its body.
    const isAnswering = answer?.headersSent === true && !answer.writableFinished;
    if (!socket.writable || error.code === 'ECONNRESET' || isAnswering) return void socket.destroy();
    const refusal = refusals[error.code ?? ''] ?? malformed;
    const requestId = randomUUID();
    const address = (socket as Socket).remoteAddress;
    logger.info({ requestId, status: refusal.status, code: refusal.code, request: { address } }, 'Unreadable request');
    socket.end(messageOf(present(refusal, requestId)));
  });
}

/**
 * Whether a request names two hosts (RFC 9112 §3.2): Node tells of the first, and whoever stands before or behind it may
 * go by the other. Then it is refused here, on the connection of an upgrade as on any other.
 */
export function refuseTwoHosts(req: IncomingMessage, answer: ServerResponse | Duplex, logger: Logger): boolean {
  const names = req.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host');
  if (names.length < 2) return false;
  const requestId = randomUUID();
  const address = req.socket.remoteAddress;
  const { status, code } = unclear;
  logger.info({ requestId, status, code, request: { address } }, 'Unreadable request');
  const problem = present(unclear, requestId);
  const { head, body } = partsOf(problem);
  if ('writeHead' in answer) answer.writeHead(status, Object.fromEntries(head)).end(body);
  else answer.end(messageOf(problem));
  return true;
}

function present({ status, code, detail }: Refusal, requestId: string): Problem {
  const type = `urn:atrium:problem:${code.toLowerCase().replaceAll('_', '-')}`;
  return { type, title: STATUS_CODES[status] ?? 'Error', status, detail, instance: '/', code, requestId };
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
