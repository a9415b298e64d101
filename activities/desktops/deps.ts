import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { CommonDeps } from '../deps.ts';

export interface DesktopDeps extends CommonDeps {
  liveComputers: LiveComputers;
  storage: ObjectStore;
  identity: Pick<Identity, 'members' | 'keys'>;
}
