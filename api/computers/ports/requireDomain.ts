import { DomainError } from '../../../base/errors.ts';
import type { RouteDeps } from '../../frame/deps.ts';

/** Throws 422 where links would lead nowhere. */
export function requireDomain({ config }: Pick<RouteDeps, 'config'>): void {
  if (config.ports.isReachable) return;
  const detail =
    'Links need a domain: the operator sets ATRIUM_PORTS_DOMAIN to one whose names all lead to this server.';
  throw new DomainError('unprocessable', 'PORTS_DOMAIN_MISSING', detail);
}
