import type { PushSender } from '../../integrations/push/pushSender.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { PushStore } from '../../models/push/index.ts';
import type { CommonDeps } from '../deps.ts';

export interface PushDeps extends CommonDeps {
  /** Who may see what; checked again before anything leaves the server. */
  members: Pick<Identity['members'], 'access'>;
  push: PushStore;
  pushSender: PushSender;
}
