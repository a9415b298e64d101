import { createDelivery } from './deliverMail.ts';
import type { MailDeps } from './deps.ts';
import { createMailSweeps } from './sweeps.ts';

export function createMailActivities(deps: MailDeps) {
  return { ...createDelivery(deps), ...createMailSweeps(deps) };
}
