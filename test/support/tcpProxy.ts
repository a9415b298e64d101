import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** An address that stays while what is behind it comes and goes, with a wire that can be cut. */
export interface TcpProxy {
  url: string;
  /** Breaks every connection off, as a network does. */
  cut(): void;
  /** Breaks every connection off, and each new one at once, until `open`. */
  shut(): void;
  open(): void;
  /** Breaks the next connection off as soon as the other side has answered so many bytes. */
  cutAfter(bytes: number): void;
  connections(): number;
  /** The bytes that have passed towards what is behind it. */
  bytesIn(): number;
  stop(): Promise<void>;
}

export async function startTcpProxy(target: () => string): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let cutAfter: number | undefined;
  let bytesIn = 0;
  let isOpen = true;
  const server = createServer((incoming) => {
    connections++;
    if (!isOpen) return incoming.destroy();
    const limit = cutAfter;
    cutAfter = undefined;
    const { hostname, port } = new URL(target());
    const outgoing = connect(Number(port), hostname);
    const ends = [incoming, outgoing];
    const destroy = () => {
      for (const end of ends) end.destroy();
    };
    for (const end of ends) {
      sockets.add(end);
      end.on('error', destroy).on('close', () => {
        sockets.delete(end);
        destroy();
      });
    }
    incoming.on('data', (bytes: Buffer) => {
      bytesIn += bytes.length;
    });
    incoming.pipe(outgoing);
    let answered = 0;
    // Before the pipe, which would pass on what is over the limit.
    outgoing.on('data', (bytes: Buffer) => {
      answered += bytes.length;
      if (limit !== undefined && answered > limit) destroy();
    });
    outgoing.pipe(incoming);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    shut() {
      isOpen = false;
      cut();
    },
    open() {
      isOpen = true;
    },
    cutAfter(bytes) {
      cutAfter = bytes;
    },
    connections: () => connections,
    bytesIn: () => bytesIn,
    async stop() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
