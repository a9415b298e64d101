import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Refusal } from '../../protocol/agentRequests.ts';
import { encodeMessage, messageKind } from '../../protocol/messages.ts';

const dialTimeoutMs = 5_000;

/** Joins a stream with a port, or with a unix socket, inside the sandbox. Throws `Refusal`. */
export async function dialInside(to: { port: number } | { path: string }, stream: Duplex): Promise<void> {
  const dialLocal = async (port: number) =>
    (await dial({ host: '127.0.0.1', port })) ?? (await dial({ host: '::1', port }));
  const socket = await ('path' in to ? dial({ path: to.path }) : dialLocal(to.port));
  if (socket === undefined) throw new Refusal('path' in to ? 'SOCKET_NOT_LISTENING' : 'PORT_NOT_LISTENING');
  stream.write(encodeMessage(messageKind.answer, {}));
  join(stream, socket);
}

/** Passes everything in both directions. When one side ends, the other is ended; when one is cut, the other is cut. */
export function join(a: Duplex, b: Duplex): void {
  for (const [one, other] of [
    [a, b],
    [b, a],
  ] as const) {
    one.on('error', () => other.destroy());
    one.once('close', () => {
      if (!other.writableEnded || !one.readableEnded) other.destroy();
    });
    one.pipe(other);
  }
}

function dial(to: { host: string; port: number } | { path: string }): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ ...to, allowHalfOpen: true, noDelay: true });
    const fail = () => {
      socket.destroy();
      resolve(undefined);
    };
    socket.setTimeout(dialTimeoutMs, fail);
    socket.once('error', fail);
    socket.once('connect', () => {
      socket.setTimeout(0);
      socket.off('error', fail);
      resolve(socket);
    });
  });
}
