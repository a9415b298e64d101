import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { SealedProfiles } from '../../models/browsers/sealedProfiles.ts';
import type { CommonDeps } from '../deps.ts';

export interface BrowserDeps extends CommonDeps {
  liveComputers: LiveComputers;
  storage: ObjectStore;
  sealedProfiles: SealedProfiles;
}
