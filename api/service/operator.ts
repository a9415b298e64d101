import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../models/errors.ts';

/** Throws unless the request comes from this machine, or has the operator's key. */
export function requireOperator(
  req: IncomingMessage,
  { trustedProxies, metricsKey }: { trustedProxies: number; metricsKey: string | undefined },
): void {
  // Behind a local proxy every request comes from loopback, and it need not say for whom it asks.
  if ((trustedProxies === 0 && isFromLoopback(req)) || hasKey(req, metricsKey)) return;
  throw new DomainError(
    'forbidden',
    'OPERATOR_ONLY',
    'Metrics are for the operator’s key, and for loopback where no proxy stands in front.',
  );
}

/** A proxy on this machine connects from loopback too: what it forwards is not from here. */
function isFromLoopback(req: IncomingMessage): boolean {
  if (req.headers['x-forwarded-for'] !== undefined || req.headers.forwarded !== undefined) return false;
  return /^(::ffff:)?127\.|^::1$/.test(req.socket.remoteAddress ?? '');
}

function hasKey(req: IncomingMessage, key: string | undefined): boolean {
  if (key === undefined) return false;
  const given = (req.headers.authorization ?? '').replace(/^bearer +/i, '');
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', key, 'buffer'));
}
