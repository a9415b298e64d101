import { hash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';
import { DomainError } from '../../models/errors.ts';
import type { ReadinessCheck, RouteDeps } from '../frame/deps.ts';
import { createRouter } from '../frame/router.ts';
import { askParts, checkTimeoutMs, notReady } from './readiness.ts';

/** What an operator's own tools ask: is it alive, is it ready, what does it do. */
export function serviceRoutes({ config, database, checks, draining, closing, logger, metrics }: RouteDeps) {
  const router = createRouter();
  const parts: readonly ReadinessCheck[] = [
    { name: 'database', check: () => database.check(checkTimeoutMs) },
    ...checks,
  ];

  router.get('/healthz', (_req, res) => {
    res.json({ status: 'ok' });
  });

  router.get('/readyz', async (_req, res) => {
    if (draining.aborted || closing.aborted) throw notReady(['server'], 'is stopping');
    res.json(await askParts(parts, logger));
  });

  router.get('/metrics', async (req, res) => {
    // Behind a proxy everybody comes from loopback, and it need not say for whom it asks.
    const isLocal = config.http.trustedProxies === 0 && isFromLoopback(req);
    if (!isLocal && !hasKey(req, config.http.metricsKey)) {
      throw new DomainError(
        'forbidden',
        'OPERATOR_ONLY',
        'Metrics are for the operator’s key, and for loopback where no proxy stands in front.',
      );
    }
    res.type(metrics.contentType).send(await metrics.metrics());
  });

  return router;
}

/** A proxy on this machine connects from loopback too: what it forwards is not from here. */
function isFromLoopback(req: Request): boolean {
  if (req.headers['x-forwarded-for'] !== undefined || req.headers.forwarded !== undefined) return false;
  return /^(::ffff:)?127\.|^::1$/.test(req.socket.remoteAddress ?? '');
}

function hasKey(req: Request, key: string | undefined): boolean {
  if (key === undefined) return false;
  const given = (req.headers.authorization ?? '').replace(/^bearer +/i, '');
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', key, 'buffer'));
}
