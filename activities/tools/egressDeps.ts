import type { EgressGuard } from '../../integrations/egress/guard.ts';
import type { EgressRules } from '../../models/egress/egressRules.ts';

/** What a tool that reaches out needs: who may go where, and who decides it. */
export interface EgressDeps {
  egressGuard: EgressGuard;
  egressRules: EgressRules;
}
