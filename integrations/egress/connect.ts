import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { DomainError } from '../../base/errors.ts';
import { ofOneConnection } from '../http/connectionHeaders.ts';

const connectTimeoutMs = 10_000;
export const idleTimeoutMs = 10 * 60_000;

/** Connects to an address that the guard has admitted. The connection ends when it has been silent for long. */
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

/** The headers that go on to the other side, without those of this connection. */
export function passedOn(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const isDropped = ofOneConnection(headers.connection);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isDropped(name)));
}

/** The same for a request that is sent with its body. Node frames a GET's or a DELETE's only if it is told to. */
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

/** What the program behind the proxy reads: a code, by which a browser's tab knows it from a page, and why. */
export function describeFailure(error: unknown): { status: number; text: string } {
  const isOurs = error instanceof ProxyError || error instanceof DomainError;
  if (!isOurs) return { status: 502, text: 'EGRESS_UNREACHABLE: The server cannot be reached.' };
  const status = error instanceof ProxyError ? error.status : error.code === 'EGRESS_REFUSED' ? 403 : 502;
  return { status, text: `${error.code}: ${error.message}` };
}
