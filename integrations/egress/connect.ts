import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { DomainError } from '../../models/errors.ts';

const connectTimeoutMs = 10_000;
export const idleTimeoutMs = 10 * 60_000;
/** RFC 9110 §7.6.1: headers of one connection, which are not passed on. */
const hopByHop = new Set(
  'connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
);

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

export function passedOn(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !named.has(name)));
}

export class ProxyError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** What the program behind the proxy reads. */
export function describeFailure(error: unknown): { status: number; text: string } {
  if (error instanceof ProxyError) return { status: error.status, text: error.message };
  if (error instanceof DomainError && error.code === 'EGRESS_REFUSED') return { status: 403, text: error.message };
  if (error instanceof DomainError) return { status: 502, text: error.message };
  return { status: 502, text: 'The server cannot be reached.' };
}
