import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { CommonDeps } from '../deps.ts';

export interface DriveDeps extends CommonDeps {
  storage: ObjectStore;
}
