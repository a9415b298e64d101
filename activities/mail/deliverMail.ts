import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import { isQuiet, quietLookMs } from '../../models/installation/installation.ts';
import type { MailContent } from '../../models/mail/mails.ts';
import { keepAlive } from '../keepAlive.ts';
import type { MailDeps } from './deps.ts';

/** Sending the mail that waits in the table. */
export function createDelivery(deps: MailDeps) {
  async function mayBeSent({ to, onlyIfMayArrive = false }: MailContent): Promise<boolean> {
    return !onlyIfMayArrive || (await deps.arrivals.mayArrive(to));
  }

  return {
    /**
     * Sends one mail, and removes it. A mail that is gone has been sent, or would come too late: either way it is done.
     * When killed between sending and removing, it is sent again under the same Message-ID.
     */
    async deliverMail(mailId: string): Promise<'sent' | 'gone'> {
      using _heartbeat = keepAlive();
      if (await isQuiet(deps.database)) throw quiet();
      const mail = await deps.mails.open(mailId);
      if (mail === undefined || deps.mailer === undefined || !(await mayBeSent(mail))) {
        await deps.mails.remove(mailId);
        return 'gone';
      }
      try {
        const { to, subject, text } = mail;
        await deps.mailer.send({ id: mailId, to, subject, text });
      } catch (error) {
        deps.logger.warn({ err: error, mailId }, 'A mail could not be sent.');
        if (!(error instanceof DomainError) || error.kind !== 'unprocessable') throw withoutDetails(error);
        await deps.mails.remove(mailId);
        throw ApplicationFailure.create({ type: error.code, message: error.message, nonRetryable: true });
      }
      await deps.mails.remove(mailId);
      return 'sent';
    },
  };
}

/** Asked again for as long as its workflow waits for a mail server. */
function quiet(): ApplicationFailure {
  const message = 'The installation is quiet; trying again.';
  return ApplicationFailure.create({ type: 'INSTALLATION_QUIET', message, nextRetryDelay: quietLookMs });
}

/** A mail server's reply may quote the mail, and a failure is kept in the history: only its code goes there. */
function withoutDetails(error: unknown): ApplicationFailure {
  const code = error instanceof DomainError ? error.code : 'MAIL_UNAVAILABLE';
  return ApplicationFailure.create({ type: code, message: 'The mail could not be sent; trying again.' });
}
