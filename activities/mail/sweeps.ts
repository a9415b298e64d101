import { asSwept, graceBefore, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';
import type { MailDeps } from './deps.ts';

export function createMailSweeps({ config, logger, mails, workflows }: MailDeps) {
  return {
    /** Starts the workflow of each mail that waits without one; a mail whose workflow has ended is not tried again. */
    sweepMails: (): Promise<SweepReport> =>
      sweepEach({
        logger,
        before: graceBefore(config),
        page: mails.waiting,
        well: (rows) => workflows.runningMails(rows.map(({ id }) => id)),
        async look({ id }, isWell) {
          const state = isWell ? 'running' : await workflows.describeMail(id);
          if (state === 'absent') return asSwept(await workflows.startMail(id), 'started');
          if (state === 'running') return 'left';
          await mails.remove(id);
          return 'ended';
        },
      }),
  };
}

export const mailSweeps = {
  rescue: ['sweepMails'],
  upkeep: [],
  quietened: ['sweepMails'],
} as const satisfies Sweeps<keyof ReturnType<typeof createMailSweeps>>;
