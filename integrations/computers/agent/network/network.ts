import { once } from 'node:events';
import type { Server } from 'node:net';
import { databasePort } from '../../../egress/databaseNames.ts';
import { dnsOverTcp, dnsOverUdp } from './dns.ts';
import { NameTable } from './nameTable.ts';
import { Connections, namedRelay, type OpenEgress, proxyRelay } from './relay.ts';

export type { OpenEgress } from './relay.ts';

interface NetworkOptions {
  open: OpenEgress;
  /** Ports served for programs that do not use the proxy. */
  ports?: readonly number[];
  maxConnections?: number;
}

const proxyPort = 3_128;
const dnsPort = 53;

export interface Network {
  /** The ports that we could not listen on, and why: `80: EADDRINUSE`. */
  faults: string[];
  close(): void;
}

/**
 * A computer's network. The space's egress proxy is the only way out of its namespace. Programs that use a proxy get a
 * relay to it. For all other programs, a DNS server gives every name an address of this machine, and relays on the
 * usual ports map that address back to the name. So names leave the computer only in CONNECT requests, and no DNS query
 * leaves it.
 */
export async function startNetwork(options: NetworkOptions): Promise<Network> {
  const { open, ports = [22, 80, 443, databasePort], maxConnections = 256 } = options;
  const names = new NameTable();
  const connections = new Connections(maxConnections);
  const udp = dnsOverUdp(names);
  const servers: [number, string, Server][] = [
    [proxyPort, '127.0.0.1', proxyRelay(open, connections)],
    [dnsPort, '127.0.0.1', dnsOverTcp(names)],
    ...ports.map((port): [number, string, Server] => [port, '0.0.0.0', namedRelay(port, names, open, connections)]),
  ];
  const faults: string[] = [];
  // If one listener fails, the others are still useful.
  const attempt = async (port: number, listening: Promise<unknown>) => {
    await listening.catch((error: NodeJS.ErrnoException) => faults.push(`${port}: ${error.code ?? error.message}`));
  };
  udp.bind(dnsPort, '127.0.0.1');
  for (const [port, host, server] of servers) server.listen({ port, host, backlog: 128 });
  await Promise.all([
    attempt(dnsPort, once(udp, 'listening')),
    ...servers.map(([port, , server]) => attempt(port, once(server, 'listening'))),
  ]);
  // A socket that fails later (for example out of descriptors) must not end the agent.
  for (const each of [udp, ...servers.map(([, , server]) => server)]) each.on('error', () => undefined);
  return {
    faults,
    close() {
      udp.close();
      for (const [, , server] of servers) server.close();
    },
  };
}
