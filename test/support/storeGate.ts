import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy for an object store. It counts reads, and can answer instead of the store. */
export interface StoreGate {
  url: string;
  /** The number of reads of the whole object. */
  wholeReads(key: string): number;
  /** Keys whose reads are answered with 500, as if the disk could not read them. */
  unreadable: Set<string>;
  stop(): Promise<void>;
}

export async function startStoreGate(target: string): Promise<StoreGate> {
  const { hostname, port } = new URL(target);
  const wholeReads = new Map<string, number>();
  const unreadable = new Set<string>();
  const server = createServer((incoming, answer) => {
    const { method, url: path = '', headers } = incoming;
    const key = path.split('?')[0]?.split('/').at(-1) ?? '';
    if (method === 'GET') {
      if (headers.range === undefined) wholeReads.set(key, (wholeReads.get(key) ?? 0) + 1);
      if (unreadable.has(key)) return void answer.writeHead(500).end();
    }
    // Keeps the client's headers, since the signature covers the address that the client used.
    const outgoing = request({ hostname, port, method, path, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    wholeReads: (key) => wholeReads.get(key) ?? 0,
    unreadable,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
