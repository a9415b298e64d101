import type { RequestHandler } from 'express';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Meters } from '../../telemetry/meters.ts';
import { whenClosed } from './goneOf.ts';

/** Creates a registry with the metrics of the process itself. Each API has its own. */
export function createMetrics(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'atrium_' });
  // Gauges that prom-client names like counters. Each only sums a gauge that has the types as a label.
  for (const kind of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`atrium_nodejs_active_${kind}_total`);
  }
  return registry;
}

/** Metrics of a worker's process and of the worker's load. */
export function createWorkerMetrics(
  worker: { load(): { activities: number; workflowTasks: number; cachedWorkflows: number } },
  meters: Pick<Meters, 'registry'>,
): Registry {
  const registry = createMetrics();
  const gauges = [
    ['activities', 'atrium_worker_activities_in_flight', 'Activities that have begun and not ended.'],
    ['workflowTasks', 'atrium_worker_workflow_tasks_in_flight', 'Workflow tasks that have begun and not ended.'],
    ['cachedWorkflows', 'atrium_worker_cached_workflows', 'Workflows that this worker keeps in memory.'],
  ] as const;
  for (const [key, name, help] of gauges) {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(worker.load()[key]);
      },
    });
  }
  return joined(registry, meters);
}

/** Joins a process's own metrics with those of the product. */
export function joined(own: Registry, { registry }: Pick<Meters, 'registry'>): Registry {
  return Registry.merge([own, registry]);
}

/** Counts and times requests by operation. Labels by path would make one series for each id. */
export function measureRequests(registry: Registry): RequestHandler {
  const durations = new Histogram({
    name: 'atrium_http_request_duration_seconds',
    help: 'Time from the request to the end of its response; streams last as long as they are open.',
    labelNames: ['operation', 'method', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  });
  const inFlight = new Gauge({
    name: 'atrium_http_requests_in_flight',
    help: 'Requests whose response has not ended.',
    registers: [registry],
  });
  return (req, res, next) => {
    const startedAt = performance.now();
    inFlight.inc();
    whenClosed(res, () => {
      inFlight.dec();
      const { id = 'none', method = 'other' } = req.operation ?? {};
      const labels = { operation: id, method, status: String(res.statusCode) };
      durations.observe(labels, (performance.now() - startedAt) / 1_000);
    });
    next();
  };
}
