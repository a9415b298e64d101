import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { SealedLogs } from '../../models/environments/builds/sealedLogs.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { SecretStore } from '../../models/secrets/index.ts';
import type { CommonDeps } from '../deps.ts';

export interface EnvironmentDeps extends CommonDeps {
  liveComputers: LiveComputers;
  storage: ObjectStore;
  secrets: SecretStore;
  sealedLogs: SealedLogs;
  identity: Pick<Identity, 'members' | 'keys'>;
}
