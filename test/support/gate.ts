import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a server that a test can cut and open again: what is behind it is down for who comes through here. */
export interface Gate {
  url: string;
  /** Breaks every connection, and refuses new ones. */
  shut(): void;
  open(): void;
  /** The bytes that have passed towards the server. */
  bytesIn(): number;
  close(): Promise<void>;
}

export async function startGate(target: string): Promise<Gate> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isOpen = true;
  let bytesIn = 0;
  const server = createServer((client) => {
    if (!isOpen) return void client.destroy();
    const upstream = connect(Number(port), hostname);
    client.on('data', (chunk) => {
      bytesIn += chunk.length;
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    shut() {
      isOpen = false;
      breakAll();
    },
    open() {
      isOpen = true;
    },
    bytesIn: () => bytesIn,
    async close() {
      server.close();
      breakAll();
      await once(server, 'close');
    },
  };
}
