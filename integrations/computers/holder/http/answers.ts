import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { bytesOf } from '../../../../base/async.ts';
import { DomainError } from '../../../../base/errors.ts';
import { isDiskFull } from '../../host/disks/disks.ts';
import { problemFrom } from '../../protocol/holderHttp.ts';

export interface Route {
  path: string[];
  query: Map<string, Buffer>;
}

export function send(res: ServerResponse, status: number, value: unknown, type = 'application/json'): void {
  const body = Buffer.from(JSON.stringify(value));
  res.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body);
}

/**
 * Sends the problem if the response has not begun. Otherwise cuts the response, so that no reader takes it for
 * complete.
 */
export function sendProblem(res: ServerResponse, error: unknown): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const problem = problemFrom(domainErrorOf(error));
  send(res, problem.status, problem, 'application/problem+json');
}

/** The response to a granted upgrade. */
export const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n';

export function refuseUpgrade(socket: Duplex, error: unknown): void {
  const problem = problemFrom(domainErrorOf(error));
  const body = JSON.stringify(problem);
  socket.end(
    `HTTP/1.1 ${problem.status} Refused\r\nContent-Type: application/problem+json\r\nConnection: close\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function domainErrorOf(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  if (isDiskFull(error)) {
    return new DomainError('unavailable', 'DISK_FULL', 'The disk of the computer’s host is full.', {
      retryAfterSeconds: 10,
    });
  }
  process.stderr.write(`${new Date().toISOString()} ${error instanceof Error ? error.stack : String(error)}\n`);
  return new DomainError('unavailable', 'HOST_FAILED', 'The computer’s host has failed.', { retryAfterSeconds: 1 });
}

export function bodyOf(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const detail = `The body is longer than ${maxBytes} bytes.`;
  return bytesOf(req, maxBytes, () => new DomainError('tooLarge', 'BODY_TOO_LARGE', detail));
}

export async function jsonOf(req: IncomingMessage, maxBytes: number): Promise<Record<string, unknown>> {
  const body = await bodyOf(req, maxBytes);
  try {
    const value: unknown = JSON.parse(body.toString());
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Invalid JSON is refused like JSON that is not an object.
  }
  throw new DomainError('invalid', 'BODY_INVALID', 'The body is not a JSON object.');
}

export function numberOf({ query }: Route, name: string): number | undefined {
  const text = query.get(name)?.toString();
  if (text === undefined) return undefined;
  const number = Number(text);
  if (text !== '' && Number.isSafeInteger(number) && number >= 0) return number;
  throw new DomainError('invalid', 'QUERY_INVALID', `The parameter ${name} is not a number from 0 on.`);
}

export function flagOf({ query }: Route, name: string): boolean {
  return query.get(name)?.toString() === 'true';
}

export function notFoundHere(): DomainError {
  return new DomainError('notFound', 'NOT_FOUND', 'This path does not exist.');
}
