import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A stable address for a changing target. Its connections can be cut. */
export interface TcpProxy {
  url: string;
  /** Breaks all connections, as a network failure does. */
  cut(): void;
  /** Breaks all connections, and new ones at once, until `open`. */
  shut(): void;
  open(): void;
  /**
   * Stops forwarding without closing connections, like a network that loses every packet. Affects present connections
   * and, until `thaw`, new ones.
   */
  freeze(options?: { newOnes?: boolean }): void;
  /** Forwards again, including bytes that arrived meanwhile. */
  thaw(): void;
  /** Breaks the next connection once the target has answered this many bytes. */
  cutAfter(bytes: number): void;
  /**
   * Waits for a connection that sends these texts in order, and breaks it when the last one is answered. So the request
   * is executed, but its answer is lost. The returned function tells whether that happened.
   */
  loseAnswerTo(...texts: string[]): () => boolean;
  /** Like `loseAnswerTo`, but keeps the connection open without forwarding any answer. */
  holdAnswerTo(...texts: string[]): () => boolean;
  connections(): number;
  /** Bytes sent to the target. */
  bytesIn(): number;
  stop(): Promise<void>;
}

export async function startTcpProxy(target: () => string): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let cutAfter: number | undefined;
  let bytesIn = 0;
  let isOpen = true;
  let losing: { texts: string[]; lost: boolean; holds: boolean } | undefined;
  let isFrozen = false;
  const pairs = new Set<[Socket, Socket]>();
  const join = ([incoming, outgoing]: [Socket, Socket]) => {
    incoming.pipe(outgoing);
    outgoing.pipe(incoming);
  };
  const part = ([incoming, outgoing]: [Socket, Socket]) => {
    incoming.unpipe(outgoing).pause();
    outgoing.unpipe(incoming).pause();
  };
  const server = createServer((incoming) => {
    connections++;
    if (!isOpen) return incoming.destroy();
    const limit = cutAfter;
    cutAfter = undefined;
    const { hostname, port } = new URL(target());
    const outgoing = connect(Number(port), hostname);
    const ends: [Socket, Socket] = [incoming, outgoing];
    pairs.add(ends);
    const destroy = () => {
      for (const end of ends) end.destroy();
    };
    for (const end of ends) {
      sockets.add(end);
      end.on('error', destroy).on('close', () => {
        sockets.delete(end);
        pairs.delete(ends);
        destroy();
      });
    }
    const seen = { of: losing, texts: 0 };
    let isLost = false;
    incoming.on('data', (bytes: Buffer) => {
      bytesIn += bytes.length;
      if (losing === undefined || losing.lost) return;
      if (seen.of !== losing) Object.assign(seen, { of: losing, texts: 0 });
      while (seen.texts < losing.texts.length && bytes.includes(losing.texts[seen.texts] ?? '')) seen.texts++;
      if (seen.texts < losing.texts.length) return;
      losing.lost = true;
      if (losing.holds) outgoing.unpipe(incoming).pause();
      else isLost = true;
    });
    let answered = 0;
    // Registered before the pipe, which would forward bytes over the limit.
    outgoing.on('data', (bytes: Buffer) => {
      if (isLost) return destroy();
      answered += bytes.length;
      if (limit !== undefined && answered > limit) destroy();
    });
    join(ends);
    if (isFrozen) part(ends);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const lose = (texts: string[], holds: boolean) => {
    const wanted = { texts, lost: false, holds };
    losing = wanted;
    return () => wanted.lost;
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
    freeze({ newOnes = true } = {}) {
      isFrozen = newOnes;
      for (const ends of pairs) part(ends);
    },
    thaw() {
      isFrozen = false;
      for (const ends of pairs) join(ends);
    },
    cutAfter(bytes) {
      cutAfter = bytes;
    },
    loseAnswerTo: (...texts) => lose(texts, false),
    holdAnswerTo: (...texts) => lose(texts, true),
    connections: () => connections,
    bytesIn: () => bytesIn,
    async stop() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
