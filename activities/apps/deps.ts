import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { ManifestReader } from '../../models/apps/manifest.ts';
import type { SpaceDatabases } from '../../models/databases/index.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { SecretStore } from '../../models/secrets/index.ts';
import type { CommonDeps } from '../deps.ts';

export interface AppDeps extends CommonDeps {
  liveComputers: LiveComputers;
  appManifests: ManifestReader;
  storage: ObjectStore;
  secrets: SecretStore;
  identity: Pick<Identity, 'members' | 'keys' | 'users'>;
  spaceDatabases: Pick<SpaceDatabases, 'ofApp'>;
}
