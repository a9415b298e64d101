import type { Mailer } from '../../integrations/mail/smtp.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { Mails } from '../../models/mail/mails.ts';
import type { CommonDeps } from '../deps.ts';

export interface MailDeps extends CommonDeps {
  /** Who may have an account here, asked before a link to make one is sent. */
  arrivals: Pick<Identity['arrivals'], 'mayArrive'>;
  mails: Mails;
  /** Absent where no mail server is configured. */
  mailer: Mailer | undefined;
}
