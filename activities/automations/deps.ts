import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { CommonDeps } from '../deps.ts';
import type { PushDeps } from '../push/deps.ts';

export interface AutomationDeps extends CommonDeps, PushDeps {
  catalogue: Catalogue;
  /** Checks the authority of runs, anew for each. */
  identity: Pick<Identity, 'members' | 'keys'>;
}
