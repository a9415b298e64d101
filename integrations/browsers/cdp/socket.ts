import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { DevToolsEndpoint } from '../types.ts';

/** A picture of the largest size that is taken, of noise, is smaller. */
export const maxMessageBytes = 48 * 1_048_576;
const handshakeMs = 10_000;

/** A WebSocket to a DevTools endpoint, on a stream to its port. It is not open yet, and ends the stream with it. */
export function socketOn(stream: Duplex, { port, path }: DevToolsEndpoint): WebSocket {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
    createConnection: (() => stream) as never,
    perMessageDeflate: false,
    handshakeTimeout: handshakeMs,
    maxPayload: maxMessageBytes,
  });
  socket.once('close', () => stream.destroy());
  return socket;
}
