import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Whether a process can listen on this address now. */
export async function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

// Below the range that the kernel uses for outgoing connections, so that none of those takes the port a moment later.
const firstFreePort = 20_000;
const lastFreePort = 32_000;

/** The usual port if it is free, otherwise any free one on loopback. */
export async function choosePort(usual?: number): Promise<number> {
  if (usual !== undefined && (await isPortFree(usual))) return usual;
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = randomInt(firstFreePort, lastFreePort);
    if (await isPortFree(port)) return port;
  }
  throw new Error('No free port was found on 127.0.0.1.');
}

/** Listens on a port of loopback, to hand the socket to another process. */
export async function listenOn(port: number): Promise<Server> {
  const server = createServer((socket) => socket.destroy()); // for connections before the handover
  server.listen({ port, host: '127.0.0.1', exclusive: true });
  await once(server, 'listening');
  return server;
}

/** Listens on the usual port if it is free, otherwise on any free one. Two starts at once never get the same port. */
export async function listenOnFree(usual?: number): Promise<Server> {
  for (let attempt = 0; attempt < 20; attempt++) {
    try {
      return await listenOn(await choosePort(usual));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
  throw new Error('No free port was found on 127.0.0.1.');
}
