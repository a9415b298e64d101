import type { EgressGuard } from '../../integrations/egress/guard.ts';
import type { EgressRules } from '../../models/egress/egressRules.ts';

/** What a tool that makes outgoing requests needs: the rules, and who decides them. */
export interface EgressDeps {
  egressGuard: EgressGuard;
  egressRules: EgressRules;
}
