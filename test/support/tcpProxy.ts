import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** An address that stays while what is behind it comes and goes, with a wire that can be cut. */
export interface TcpProxy {
  url: string;
  /** Breaks every connection off, as a network does. */
  cut(): void;
  /** Breaks every connection off, and each new one at once, until `restore`. */
  block(): void;
  restore(): void;
  /** Breaks the next connection off as soon as the other side has answered so many bytes. */
  cutAfter(bytes: number): void;
  connections(): number;
  stop(): Promise<void>;
}

export async function startTcpProxy(target: () => string): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let cutAfter: number | undefined;
  let isBlocked = false;
  const server = createServer((incoming) => {
    connections++;
    if (isBlocked) return incoming.destroy();
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
    incoming.pipe(outgoing);
    let answered = 0;
    outgoing.on('data', (bytes: Buffer) => {
      answered += bytes.length;
      if (limit !== undefined && answered > limit) return destroy();
      incoming.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    block() {
      isBlocked = true;
      cut();
    },
    restore() {
      isBlocked = false;
    },
    cutAfter(bytes) {
      cutAfter = bytes;
    },
    connections: () => connections,
    async stop() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
