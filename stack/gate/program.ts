import { spawn } from 'node:child_process';
import { connect, Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GateOrder } from './messages.ts';
import { peerUser, readTable } from './peerUser.ts';
import { createUiFront } from './uiFront.ts';

/**
 * Run as a program in a private network: `program.ts COMMAND…`. It runs the command, a server, and is the only way to
 * reach it. Its listening sockets were made outside and are handed to it, so clients outside reach the gate, and the
 * gate reaches the server. The gate ends with the server, and both end with the process that started them.
 */
const [command = '', ...args] = process.argv.slice(2);
/** The outer network's table of connections, opened outside. Descriptor 3 is the channel. */
const outerTable = 4;
const loopback = '127.0.0.1';
const pollMs = 20;
/** A read of the table may miss a row while other connections come and go. */
const lookups = 3;

const server = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
server.once('error', (error) => {
  process.stderr.write(`error: ${command} could not be started (${error.message})\n`);
  process.exit(1);
});
server.once('exit', (code, signal) => process.exit(code ?? (signal === 'SIGKILL' ? 137 : 143)));
for (const signal of ['SIGTERM', 'SIGQUIT'] as const) process.on(signal, () => server.kill(signal));
process.on('SIGINT', () => undefined);
process.once('disconnect', () => {
  server.kill('SIGKILL');
  process.exit(1);
});

process.on('message', (order: GateOrder, handle: unknown) => {
  if (!(handle instanceof Server)) return;
  if (order.open === 'server') openServer(handle, order);
  else createUiFront({ ...order, upstream: { host: loopback, port: order.upstreamPort } }).listen(handle);
  process.send?.({ opened: order.open });
});

function openServer(listener: Server, { user, upstreamPort }: GateOrder & { open: 'server' }): void {
  const listening = waitForServer(upstreamPort);
  listener.on('connection', (client) => {
    client.on('error', () => client.destroy());
    if (!isFrom(client, user)) return client.destroy();
    // Connections that arrive before the server listens wait for it, so clients need not retry.
    void listening.then(() => relay(client, upstreamPort));
  });
}

function isFrom({ remoteAddress, remotePort, localAddress, localPort }: Socket, user: number): boolean {
  if (remoteAddress === undefined || remotePort === undefined) return false;
  if (localAddress === undefined || localPort === undefined) return false;
  const client = { address: remoteAddress, port: remotePort };
  const ours = { address: localAddress, port: localPort };
  for (let lookup = 0; lookup < lookups; lookup++) {
    const found = peerUser(readTable(outerTable), client, ours);
    if (found !== undefined) return found === user;
  }
  return false;
}

function relay(client: Socket, port: number): void {
  if (client.destroyed) return;
  const upstream = connect({ host: loopback, port, noDelay: true });
  client.setNoDelay(true);
  upstream.on('error', () => client.destroy());
  client.once('close', () => upstream.destroy());
  client.pipe(upstream).pipe(client);
}

async function waitForServer(port: number): Promise<void> {
  while (!(await answers(port))) await sleep(pollMs);
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ host: loopback, port });
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
}
