import { hash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';
import { DomainError } from '../../models/errors.ts';
import type { ReadinessCheck, RouteDeps } from '../frame/deps.ts';
import { createRouter } from '../frame/router.ts';

const checkTimeoutMs = 2_000;
const retryAfterSeconds = 2;

/** What an operator's own tools ask: is it alive, is it ready, what does it do. */
export function serviceRoutes({ config, database, checks, closing, logger, metrics }: RouteDeps) {
  const router = createRouter();
  const parts: readonly ReadinessCheck[] = [
    { name: 'database', check: () => database.check(checkTimeoutMs) },
    ...checks,
  ];

  router.get('/healthz', (_req, res) => {
    res.json({ status: 'ok' });
  });

  router.get('/readyz', async (_req, res) => {
    if (closing.aborted) throw notReady([{ name: 'server' }]);
    const results = await Promise.all(parts.map(measure));
    const failed = results.filter((result) => result.error !== undefined);
    for (const { name, error } of failed) logger.warn({ part: name, reason: String(error) }, 'not ready');
    if (failed.length > 0) throw notReady(failed);
    res.json({ status: 'ready', parts: results.map(({ name, durationMs }) => ({ name, durationMs })) });
  });

  router.get('/metrics', async (req, res) => {
    if (!isFromLoopback(req) && !hasKey(req, config.http.metricsKey)) {
      throw new DomainError('forbidden', 'OPERATOR_ONLY', 'Metrics are for loopback, or for the operator’s key.');
    }
    res.type(metrics.contentType).send(await metrics.metrics());
  });

  return router;
}

async function measure({ name, check }: ReadinessCheck) {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${checkTimeoutMs} ms`)), checkTimeoutMs);
  });
  try {
    await Promise.race([check(), timeout]);
    return { name, durationMs: Math.round((performance.now() - startedAt) * 10) / 10 };
  } catch (error) {
    return { name, durationMs: performance.now() - startedAt, error };
  } finally {
    clearTimeout(timer);
  }
}

function notReady(failed: readonly { name: string }[]): DomainError {
  const names = failed.map(({ name }) => name);
  return new DomainError('unavailable', 'NOT_READY', `Not ready: ${names.join(', ')}.`, {
    errors: names.map((name) => ({ pointer: name, detail: 'does not answer' })),
    retryAfterSeconds,
  });
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
