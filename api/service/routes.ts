import { answer } from '../frame/answer.ts';
import type { ReadinessCheck, RouteDeps } from '../frame/deps.ts';
import { createRouter } from '../frame/router.ts';
import { requireOperator } from './operator.ts';
import { askParts, checkTimeoutMs, notReady } from './readiness.ts';

/** Endpoints for an operator's tools: liveness, readiness, metrics. */
export function serviceRoutes({ config, database, checks, draining, closing, logger, metrics }: RouteDeps) {
  const router = createRouter();
  const parts: readonly ReadinessCheck[] = [
    { name: 'database', check: () => database.check(checkTimeoutMs) },
    ...checks,
  ];

  router.get('/healthz', (_req, res) => {
    answer<'getHealth'>(res, 200, { status: 'ok' });
  });

  router.get('/readyz', async (_req, res) => {
    if (draining.aborted || closing.aborted) throw notReady([{ name: 'server', fault: 'is stopping' }]);
    answer<'getReadiness'>(res, 200, await askParts(parts, logger));
  });

  router.get('/metrics', async (req, res) => {
    requireOperator(req, config.http);
    res.type(metrics.contentType).send(await metrics.metrics());
  });

  return router;
}
