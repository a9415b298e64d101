import { once } from 'node:events';
import type { Server } from 'node:net';
import { databasePort } from '../../../egress/databaseNames.ts';
import { dnsOverTcp, dnsOverUdp } from './dns.ts';
import { NameTable } from './nameTable.ts';
import { Connections, namedRelay, type OpenEgress, proxyRelay } from './relay.ts';

export type { OpenEgress } from './relay.ts';

interface NetworkOptions {
  open: OpenEgress;
  /** Where names are connected to although the program knows of no proxy. */
  ports?: readonly number[];
  proxyPort?: number;
  dnsPort?: number;
  maxConnections?: number;
}

export interface Network {
  /** What could not be listened on, and why: `80: EADDRINUSE`. */
  faults: string[];
  close(): void;
}

/**
 * A computer's network: the only way out of its namespace is the space's egress proxy. A relay for programs that are
 * told of the proxy by their environment, and for all others a DNS server that gives every name an address of this
 * machine, where the relays for the usual ports know it again. So names leave as CONNECT only, and no query ever does.
 */
export async function startNetwork(options: NetworkOptions): Promise<Network> {
  const { open, ports = [22, 80, 443, databasePort], proxyPort = 3128, dnsPort = 53, maxConnections = 256 } = options;
  const names = new NameTable();
  const connections = new Connections(maxConnections);
  const udp = dnsOverUdp(names);
  const servers: [number, string, Server][] = [
    [proxyPort, '127.0.0.1', proxyRelay(open, connections)],
    [dnsPort, '127.0.0.1', dnsOverTcp(names)],
    ...ports.map((port): [number, string, Server] => [port, '0.0.0.0', namedRelay(port, names, open, connections)]),
  ];
  const faults: string[] = [];
  // Without one of them the others are of use all the same.
  const attempt = async (port: number, listening: Promise<unknown>) => {
    await listening.catch((error: NodeJS.ErrnoException) => faults.push(`${port}: ${error.code ?? error.message}`));
  };
  udp.bind(dnsPort, '127.0.0.1');
  for (const [port, host, server] of servers) server.listen({ port, host, backlog: 128 });
  await Promise.all([
    attempt(dnsPort, once(udp, 'listening')),
    ...servers.map(([port, , server]) => attempt(port, once(server, 'listening'))),
  ]);
  // A socket that has failed later (out of descriptors) must not end the agent.
  for (const each of [udp, ...servers.map(([, , server]) => server)]) each.on('error', () => undefined);
  return {
    faults,
    close() {
      udp.close();
      for (const [, , server] of servers) server.close();
    },
  };
}
