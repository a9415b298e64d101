import { createDelivery } from './deliverMail.ts';
import type { MailDeps } from './deps.ts';
import { createMailSweeps, mailSweeps } from './sweeps.ts';

function createMailActivities(deps: MailDeps) {
  return { ...createDelivery(deps), ...createMailSweeps(deps) };
}

export const mail = { create: createMailActivities, sweeps: mailSweeps };
