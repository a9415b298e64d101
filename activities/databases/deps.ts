import type { TenantServer } from '../../integrations/tenantDatabases/tenantServer.ts';
import type { SpaceDatabases } from '../../models/databases/index.ts';
import type { CommonDeps } from '../deps.ts';

export interface DatabaseDeps extends CommonDeps {
  spaceDatabases: Pick<SpaceDatabases, 'alignment'>;
  /** Undefined where none is configured. */
  tenantServer: TenantServer | undefined;
}
