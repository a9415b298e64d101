import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { decodeQuery } from '../client/query.ts';
import type { HolderStatus } from '../hostClient.ts';
import type { ProcessStore } from '../processes/processStore.ts';
import type { Agent } from './agent.ts';
import { notFoundHere, type Route, send, sendProblem } from './answers.ts';
import { fileRoute } from './fileRoutes.ts';
import { portRoute } from './portRoute.ts';
import type { HolderProcesses } from './processes.ts';
import { processRoute } from './processRoutes.ts';
import { storeRoute } from './storeRoutes.ts';

interface ServerOptions {
  agent: Agent;
  processes: HolderProcesses;
  store: ProcessStore;
  status: () => HolderStatus;
  /** Somebody uses the computer by a request of this method; the answer is called when they have done. */
  use: (method: string) => () => void;
}

const maxConnections = 512;

/** The holder’s HTTP, which only its host and the processes of Atrium on it can reach. */
export function createHolderServer(options: ServerOptions): Server {
  const server = createServer((req, res) => {
    const done = options.use(req.method ?? '');
    answer(options, req, res)
      .catch((error: unknown) => sendProblem(res, error))
      .finally(done);
  });
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    const done = options.use('CONNECT');
    socket.on('error', () => undefined);
    void portRoute(options.agent, routeOf(req).path, socket, head).finally(done);
  });
  // A transfer may take its time: whoever is silent in it is cut by its own route.
  server.requestTimeout = 0;
  server.maxConnections = maxConnections;
  return server;
}

function answer(options: ServerOptions, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { agent, processes, store, status } = options;
  const route = routeOf(req);
  const [first] = route.path;
  if (first === undefined && req.method === 'GET') return Promise.resolve(send(res, 200, status()));
  const read = storeRoute(store, req, res, route);
  if (read !== undefined) return read;
  if (first === 'processes') return processRoute({ processes, store }, req, res, route);
  if (first === 'files') return fileRoute(agent, req, res, route);
  return Promise.reject(notFoundHere());
}

export function routeOf({ url = '/' }: IncomingMessage): Route {
  const end = url.indexOf('?');
  const path = (end < 0 ? url : url.slice(0, end)).split('/').filter((part) => part !== '');
  return { path: path.map(decoded), query: decodeQuery(url) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
