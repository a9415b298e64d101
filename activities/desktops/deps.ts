import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { CommonDeps } from '../deps.ts';

export interface DesktopDeps extends CommonDeps {
  liveComputers: LiveComputers;
}
