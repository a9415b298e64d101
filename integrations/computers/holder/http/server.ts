import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { DomainError } from '../../../../base/errors.ts';
import type { HolderStatus } from '../../hostClient.ts';
import type { ProcessStore } from '../../processes/processStore.ts';
import { decodeQuery, notRunning } from '../../protocol/holderHttp.ts';
import type { Agent } from '../agent.ts';
import type { HolderProcesses } from '../processes/processes.ts';
import type { Screens } from '../screens/screens.ts';
import { jsonOf, notFoundHere, type Route, refuseUpgrade, send, sendProblem } from './answers.ts';
import { fileRoute } from './fileRoutes.ts';
import { portRoute } from './portRoute.ts';
import { processRoute } from './processRoutes.ts';
import { storeRoute } from './storeRoutes.ts';

interface ServedProcesses {
  processes: HolderProcesses;
  store: ProcessStore;
  screens: Screens;
}

interface ServerOptions {
  agent: Agent;
  /** The users' processes, at `/processes`. */
  users: ServedProcesses;
  /** Processes that Atrium itself runs, at `/own/processes`. */
  own: ServedProcesses;
  status: () => HolderStatus;
  /** Whether its ports can be reached. A short-lived sandbox on a stopped computer has none. */
  hasPorts: boolean;
  /** Counts a request as use of the computer. The returned function ends the use. */
  use: (request: { method: string; isOwn: boolean }) => () => void;
}

/**
 * Ports and other requests have separate limits: visitors of port links do not block processes and files, and neither
 * of them blocks the host's status requests.
 */
const mostPorts = 256;
const mostRequests = 256;
const maxConnections = 640;

/** The holder's HTTP server. Only its host and the processes of Atrium on this machine can reach it. */
export function createHolderServer(options: ServerOptions): Server {
  const open = { ports: 0, requests: 0 };
  const server = createServer((req, res) => {
    if (req.method === 'GET' && req.url === '/') return send(res, 200, options.status());
    if (req.method === 'GET' && req.url === '/ping') {
      return void ping(options.agent, res).catch((error: unknown) => sendProblem(res, error));
    }
    if (open.requests >= mostRequests) return sendProblem(res, tooMany('requests for'));
    open.requests++;
    const done = options.use({ method: req.method ?? '', isOwn: routeOf(req).path[0] === 'own' });
    answer(options, req, res)
      .catch((error: unknown) => sendProblem(res, error))
      .finally(() => {
        open.requests--;
        done();
      });
  });
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => undefined);
    if (!options.hasPorts) return refuseUpgrade(socket, notRunning());
    if (open.ports >= mostPorts) return refuseUpgrade(socket, tooMany('connections to ports of'));
    open.ports++;
    const { path } = routeOf(req);
    const isOwn = path[0] === 'own';
    const done = options.use({ method: 'CONNECT', isOwn });
    void portRoute(options.agent, isOwn ? path.slice(1) : path, socket, head).finally(() => {
      open.ports--;
      done();
    });
  });
  // A transfer may take long. Its own route cuts a silent client.
  server.requestTimeout = 0;
  server.maxConnections = maxConnections;
  return server;
}

function answer(options: ServerOptions, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { agent, users, own } = options;
  const route = routeOf(req);
  const [first, ...rest] = route.path;
  if (first === 'processes') return answerProcesses(users, req, res, route);
  if (first === 'own' && rest[0] === 'processes') return answerProcesses(own, req, res, { ...route, path: rest });
  if (first === 'paused' && req.method === 'POST') return takePaused([users, own], req, res);
  if (first === 'files') return fileRoute(agent, req, res, route);
  return Promise.reject(notFoundHere());
}

function answerProcesses(served: ServedProcesses, req: IncomingMessage, res: ServerResponse, route: Route) {
  return storeRoute(served.store, req, res, route) ?? processRoute(served, req, res, route);
}

const pingMs = 25_000;

async function ping(agent: Agent, res: ServerResponse): Promise<void> {
  await agent.ask({ kind: 'ping' }, { deadlineMs: pingMs });
  send(res, 200, {});
}

/** The host sends this after it has paused or resumed the computer. */
async function takePaused(served: ServedProcesses[], req: IncomingMessage, res: ServerResponse): Promise<void> {
  const isPaused = (await jsonOf(req, 1_000)).isPaused === true;
  for (const { processes } of served) processes.setPaused(isPaused);
  send(res, 200, {});
}

function routeOf({ url = '/' }: IncomingMessage): Route {
  const end = url.indexOf('?');
  const path = (end < 0 ? url : url.slice(0, end)).split('/').filter((part) => part !== '');
  return { path: path.map(decoded), query: decodeQuery(url) };
}

function tooMany(what: string): DomainError {
  const detail = `There are too many ${what} this computer at once. Try again in a moment.`;
  return new DomainError('unavailable', 'COMPUTER_CONNECTIONS_FULL', detail, { retryAfterSeconds: 2 });
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
