import type { Payments } from '../../integrations/billing/index.ts';
import type { CommonDeps } from '../deps.ts';
import type { MailDeps } from '../mail/deps.ts';

export interface BillingDeps extends CommonDeps, Pick<MailDeps, 'mails' | 'mailer'> {
  payments: Payments;
}
