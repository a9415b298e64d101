import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../base/errors.ts';
import { hostNameOf } from '../frame/ownHosts.ts';

/** Throws unless the request comes from this machine or has the operator's key. */
export function requireOperator(
  req: IncomingMessage,
  {
    trustedProxies,
    metricsKey,
    publicUrl,
  }: { trustedProxies: number; metricsKey: string | undefined; publicUrl?: string },
): void {
  // Behind a local proxy every request comes from loopback, and the proxy may not name the original client.
  if (trustedProxies === 0 && isFromLoopback(req) && isAskedByName(req, publicUrl)) return;
  if (hasKey(req, metricsKey)) return;
  throw new DomainError(
    'forbidden',
    'OPERATOR_ONLY',
    'Read metrics with the operator’s key, or from this machine under a loopback name and without a proxy.',
  );
}

/** A proxy on this machine connects from loopback too. The requests that it forwards do not come from this machine. */
function isFromLoopback(req: IncomingMessage): boolean {
  if (req.headers['x-forwarded-for'] !== undefined || req.headers.forwarded !== undefined) return false;
  return /^(::ffff:)?127\.|^::1$/.test(req.socket.remoteAddress ?? '');
}

/**
 * Whether the request names this machine or the configured host. A page whose host name was made to resolve to loopback
 * (DNS rebinding) sends its own name, and must not read the answer.
 */
function isAskedByName({ headers }: IncomingMessage, publicUrl: string | undefined): boolean {
  const name = hostNameOf(headers.host);
  const isLoopback = name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name);
  return isLoopback || (publicUrl !== undefined && name === hostNameOf(new URL(publicUrl).host));
}

function hasKey(req: IncomingMessage, key: string | undefined): boolean {
  if (key === undefined) return false;
  const given = (req.headers.authorization ?? '').replace(/^bearer +/i, '');
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', key, 'buffer'));
}
