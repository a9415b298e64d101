import { keepAlive } from '../keepAlive.ts';
import type { MailDeps } from './deps.ts';

const maxMailsPerSweep = 200;

export function createMailSweeps(deps: MailDeps) {
  return {
    /** Starts the workflow of each mail that waits without one; a mail whose workflow has ended is not tried again. */
    async sweepMails(): Promise<number> {
      using _heartbeat = keepAlive();
      const before = new Date(Date.now() - deps.config.sweeper.graceSeconds * 1_000);
      let started = 0;
      for (const mailId of await deps.mails.waitingSince(before, maxMailsPerSweep)) {
        const state = await deps.workflows.describeMail(mailId);
        if (state === 'absent') {
          await deps.workflows.startMail(mailId);
          started += 1;
        } else if (state === 'closed') await deps.mails.remove(mailId);
      }
      return started;
    },
  };
}

export const mailSweeps = ['sweepMails'] as const satisfies readonly (keyof ReturnType<typeof createMailSweeps>)[];
