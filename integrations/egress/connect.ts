import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { DomainError } from '../../base/errors.ts';
import { ofOneConnection } from '../http/connectionHeaders.ts';

const connectTimeoutMs = 10_000;
export const idleTimeoutMs = 10 * 60_000;

/** Connects to an address that the guard has admitted. The connection ends after 10 minutes of silence. */
export function dial(host: string, port: number): Promise<Socket> {
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

/** The headers to pass on to the other side, without those that are about this connection. */
export function passedOn(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const isDropped = ofOneConnection(headers.connection);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isDropped(name)));
}

/** The same for a request with its body. Node frames the body of a GET or DELETE only with this header. */
export function passedRequest(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const isChunked = headers['transfer-encoding'] !== undefined;
  return { ...passedOn(headers), ...(isChunked && { 'transfer-encoding': 'chunked' }) };
}

/** The same for a request to leave HTTP: it has no body. */
export function passedUpgrade(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const { 'content-length': _, ...others } = passedOn(headers);
  return { ...others, connection: 'Upgrade', upgrade: headers.upgrade };
}

export class ProxyError extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, message: string, code = 'EGRESS_REFUSED') {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * The answer for the program behind the proxy: an error code, by which a browser's tab tells it from a page, and why.
 */
export function describeFailure(error: unknown): { status: number; text: string } {
  const isOurs = error instanceof ProxyError || error instanceof DomainError;
  if (!isOurs) return { status: 502, text: 'EGRESS_UNREACHABLE: The server cannot be reached.' };
  const status = error instanceof ProxyError ? error.status : error.code === 'EGRESS_REFUSED' ? 403 : 502;
  return { status, text: `${error.code}: ${error.message}` };
}
