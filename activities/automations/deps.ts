import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { CommonDeps } from '../deps.ts';
import type { PushDeps } from '../push/deps.ts';

export interface AutomationDeps extends CommonDeps, PushDeps {
  catalogue: Catalogue;
  /** Whose authority the runs have, asked again for each. */
  identity: Pick<Identity, 'members' | 'keys'>;
}
