import { sendMail } from '../../workflows/mail/sendMail.ts';
import type { LauncherParts } from '../launcherKit.ts';
import { kindKey } from '../searchKeys.ts';
import { mailWorkflowId } from '../workflowIds.ts';

export function createMailLauncher({ kit }: LauncherParts) {
  return {
    /** Sends a mail that waits in the table. */
    startMail: (mailId: string) =>
      kit.start(sendMail, {
        workflowId: mailWorkflowId(mailId),
        args: [mailId],
        attributes: [{ key: kindKey, value: 'mail' }],
        summary: 'Send a mail',
      }),

    describeMail: (mailId: string) => kit.describe(mailWorkflowId(mailId)),
    runningMails: (mailIds: readonly string[]) => kit.running(mailIds, mailWorkflowId),
  };
}
