import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import type { Logger } from '../../telemetry/logger.ts';
import type { ReadinessCheck } from '../frame/deps.ts';
import { describeFailure } from '../frame/failures.ts';
import { listen } from '../frame/server.ts';
import { requireOperator } from './operator.ts';
import { askParts } from './readiness.ts';

export interface WorkerProbes {
  url: string;
  close(): void;
}

export interface WorkerProbeOptions {
  host: string;
  port: number;
  metricsKey: string | undefined;
  checks: readonly ReadinessCheck[];
  metrics: Pick<Registry, 'contentType' | 'metrics'>;
  logger: Logger;
}

interface Answer {
  status: number;
  type: string;
  body: string;
}

/** A worker's only endpoints, for an operator's tools: `/healthz`, `/readyz` and `/metrics`, like the API's. */
export async function startWorkerProbes(options: WorkerProbeOptions): Promise<WorkerProbes> {
  const { host, port } = options;
  const server = createServer((req, res) => void respond(options, req, res));
  await listen(server, { host, port }, { host: 'ATRIUM_WORKER_HOST', port: 'ATRIUM_WORKER_PORT' });
  // Let the process end when it has nothing else to do.
  server.unref();
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function respond(options: WorkerProbeOptions, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { status, type, body } = await answer(options, req).catch(problemOf);
  res.writeHead(status, { 'content-type': type }).end(req.method === 'HEAD' ? undefined : body);
}

async function answer(
  { checks, metrics, metricsKey, logger }: WorkerProbeOptions,
  req: IncomingMessage,
): Promise<Answer> {
  switch (req.url?.split('?')[0]) {
    case '/healthz':
      return json({ status: 'ok' });
    case '/readyz':
      return json(await askParts(checks, logger));
    case '/metrics':
      // No proxy stands in front of a worker.
      requireOperator(req, { trustedProxies: 0, metricsKey });
      return { status: 200, type: metrics.contentType, body: await metrics.metrics() };
    default:
      return problemOf({ status: 404 });
  }
}

function json(body: unknown): Answer {
  return { status: 200, type: 'application/json', body: JSON.stringify(body) };
}

function problemOf(error: unknown): Answer {
  const { status, code, detail, errors, retryAfterSeconds: retryAfter } = describeFailure(error);
  const body = JSON.stringify({ status, code, detail, errors, retryAfter });
  return { status, type: 'application/problem+json', body };
}
