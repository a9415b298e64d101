import { DomainError } from '../../base/errors.ts';
import type { TenantServer } from '../../integrations/databases/tenantServer.ts';

/** Throws 422 `DATABASES_NOT_CONFIGURED`. */
export function requireServer(server: TenantServer | undefined): TenantServer {
  if (server !== undefined) return server;
  const detail =
    'This installation has no database server for spaces. The operator must set ATRIUM_TENANT_DATABASE_URL.';
  throw new DomainError('unprocessable', 'DATABASES_NOT_CONFIGURED', detail);
}
