import { DomainError, type DomainErrorKind } from '../../../base/errors.ts';
import { statusOf } from '../../http/statuses.ts';

/** Query parameters of a request to a holder. Bytes are escaped one by one, since a path need not be UTF-8. */
export type Query = Record<string, string | number | boolean | Uint8Array>;

const unreserved = /[A-Za-z0-9\-._~/]/;

export function encodeQuery(query: Query): string {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeValue(value)}`);
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** The parameters of a URL, as bytes. */
export function decodeQuery(url: string): Map<string, Buffer> {
  const start = url.indexOf('?');
  if (start < 0) return new Map();
  const pairs = url
    .slice(start + 1)
    .split('&')
    .map((pair) => {
      const end = pair.indexOf('=');
      const [name, value] = end < 0 ? [pair, ''] : [pair.slice(0, end), pair.slice(end + 1)];
      return [name, decodeValue(value)] as const;
    });
  return new Map(pairs);
}

function encodeValue(value: string | number | boolean | Uint8Array): string {
  const bytes = typeof value === 'object' ? value : Buffer.from(String(value));
  let text = '';
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    text += unreserved.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`;
  }
  return text;
}

function decodeValue(text: string): Buffer {
  const bytes = text.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}

export function notRunning(cause?: unknown): DomainError {
  return new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer is not running.', { cause });
}

export function notAnswering(cause?: unknown): DomainError {
  return new DomainError('upstreamTimeout', 'COMPUTER_NOT_ANSWERING', 'The computer does not answer.', { cause });
}

export function connectionLost(cause?: unknown): DomainError {
  const detail = 'The connection to the computer was lost.';
  return new DomainError('unavailable', 'COMPUTER_CONNECTION_LOST', detail, { retryAfterSeconds: 1, cause });
}

const kindOf = new Map(Object.entries(statusOf).map(([kind, status]) => [status, kind as DomainErrorKind]));

/** A refusal as JSON, as it is sent over a holder's socket. */
export interface Problem {
  status: number;
  code: string;
  detail: string;
  retryAfter?: number;
}

export function problemFrom({ kind, code, message, retryAfterSeconds }: DomainError): Problem {
  return {
    status: statusOf[kind],
    code,
    detail: message,
    ...(retryAfterSeconds !== undefined && { retryAfter: retryAfterSeconds }),
  };
}

/**
 * Reads the refusal in a response body. A body without a refusal becomes 502. So does status 401: the host refused our
 * token, not the caller's.
 */
export function problemOf(status: number, body: string): DomainError {
  try {
    const { code, detail, retryAfter } = JSON.parse(body) as Problem;
    const kind = kindOf.get(status);
    if (kind !== undefined && kind !== 'unauthenticated' && typeof code === 'string' && typeof detail === 'string') {
      return new DomainError(kind, code, detail, retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter });
    }
  } catch {
    // The body is not a refusal.
  }
  return new DomainError('upstream', 'HOST_FAILED', 'The computer’s host has failed.');
}
