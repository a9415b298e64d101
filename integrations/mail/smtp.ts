import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { onFirstUse } from '../onFirstUse.ts';

export type MailConfig = NonNullable<Config['signIn']['mail']>;

export interface OutgoingMail {
  /** Makes the Message-ID, so that a mail that is sent twice is shown once. */
  id: string;
  to: string;
  subject: string;
  text: string;
}

const timeoutMs = 20_000;

/** Sends mail over the operator's SMTP server. */
export interface Mailer {
  /** Throws 422 `MAIL_REFUSED` when the server will never take it, 503 `MAIL_UNAVAILABLE` when it may later. */
  send(mail: OutgoingMail): Promise<void>;
  /** Whether the server answers and takes our login. */
  verify(): Promise<void>;
}

export function createMailer({ smtpUrl, from }: MailConfig): Mailer {
  const domain = /@([^>\s]+)/.exec(from)?.[1] ?? 'atrium.invalid';
  // One connection per mail: mails are few, and an idle connection would only break.
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
          // As an object, so that an address is never parsed as a list.
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

/** 5xx is permanent (RFC 5321, 4.2.1), but not where the server refuses our login: an operator can fix that. */
function normaliseMailError(cause: unknown): DomainError {
  const { responseCode, code } = cause as { responseCode?: number; code?: string };
  if (responseCode !== undefined && responseCode >= 500 && code !== 'EAUTH') {
    return new DomainError('unprocessable', 'MAIL_REFUSED', 'The mail server refuses this mail.', { cause });
  }
  return new DomainError('unavailable', 'MAIL_UNAVAILABLE', 'The mail server does not answer.', { cause });
}
