import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { onFirstUse } from '../onFirstUse.ts';

export type MailConfig = NonNullable<Config['signIn']['mail']>;

export interface OutgoingMail {
  /** Becomes the Message-ID, so that a mail that is sent twice is shown once. */
  id: string;
  to: string;
  subject: string;
  text: string;
}

const timeoutMs = 20_000;

/** Sends mail over the operator's SMTP server. */
export interface Mailer {
  /** Throws 422 `MAIL_REFUSED` if the server will never accept the mail, 503 `MAIL_UNAVAILABLE` if it may later. */
  send(mail: OutgoingMail): Promise<void>;
  /** Rejects unless the server answers and accepts our login. */
  verify(): Promise<void>;
}

export function createMailer({ smtpUrl, from }: MailConfig): Mailer {
  const domain = /@([^>\s]+)/.exec(from)?.[1] ?? 'atrium.invalid';
  // A new connection for each mail: mails are few, and an idle connection would just break.
  const timeouts = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs };
  const loadLibrary = onFirstUse(() => import('nodemailer'));
  const openTransport = async () => {
    const { createTransport } = await loadLibrary();
    return createTransport({ url: smtpUrl, ...timeouts });
  };
  return {
    async send({ id, to, subject, text }) {
      const smtp = await openTransport();
      try {
        await smtp.sendMail({
          from,
          // An object, so that an address is never parsed as a list.
          to: { name: '', address: to },
          subject,
          text,
          messageId: `<${id}@${domain}>`,
          headers: { 'auto-submitted': 'auto-generated' },
          disableFileAccess: true,
          disableUrlAccess: true,
        });
      } catch (error) {
        throw normaliseMailError(error);
      } finally {
        smtp.close();
      }
    },
    async verify() {
      const smtp = await openTransport();
      try {
        await smtp.verify();
      } catch (error) {
        throw normaliseMailError(error);
      } finally {
        smtp.close();
      }
    },
  };
}

/** A 5xx answer is permanent (RFC 5321, 4.2.1), except if the server refuses our login, which an operator can fix. */
function normaliseMailError(cause: unknown): DomainError {
  const { responseCode, code } = cause as { responseCode?: number; code?: string };
  if (responseCode !== undefined && responseCode >= 500 && code !== 'EAUTH') {
    return new DomainError('unprocessable', 'MAIL_REFUSED', 'The mail server refuses this mail.', { cause });
  }
  return new DomainError('unavailable', 'MAIL_UNAVAILABLE', 'The mail server does not answer.', { cause });
}
