import type { EgressGuard } from '../../integrations/egress/guard.ts';
import type { EgressRules } from '../../models/egress/egressRules.ts';
import type { WebhookEndpoints } from '../../models/webhooks/endpoints.ts';
import type { CommonDeps } from '../deps.ts';

export interface WebhookDeps extends CommonDeps {
  egressGuard: EgressGuard;
  egressRules: EgressRules;
  webhookEndpoints: Pick<WebhookEndpoints, 'secrets'>;
}
