import type { TenantServer } from '../../integrations/databases/tenantServer.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { SpaceDatabases } from '../../models/databases/index.ts';
import type { CommonDeps } from '../deps.ts';

export interface DatabaseDeps extends CommonDeps {
  spaceDatabases: Pick<SpaceDatabases, 'alignment' | 'ownerOf' | 'readerOf'>;
  storage: ObjectStore;
  /** Undefined if none is configured. */
  tenantServer: TenantServer | undefined;
}
