import type { Command } from 'commander';
import { countWaiting, resumeInstallation } from '../../models/installation/installation.ts';
import { print } from '../support/answer.ts';
import { withDatabase } from '../support/installation.ts';

/** `atrium resume`: lets a restored installation go on. */
export function addResume(program: Command): void {
  program
    .command('resume')
    .description('let automations, schedules, webhooks and mail of a restored installation go on')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const { waited, isResumed } = await withDatabase(async (database) => {
        const waiting = await countWaiting(database, new Date());
        return { waited: waiting, isResumed: await resumeInstallation(database) };
      });
      const { automations, appSchedules, appRuns, webhookDeliveries, mails } = waited;
      const lines = [
        'Resumed. All automations, schedules, webhooks and mail go on. Within two minutes, those that were due or waiting do:',
        `  ${automations} automations, ${appSchedules} schedules and ${appRuns} runs of apps`,
        `  ${webhookDeliveries} deliveries to webhook endpoints, ${mails} mails`,
        'A time that was missed for too long is listed as MISSED with its automation or schedule, and is not made up for.',
      ];
      const text = isResumed ? lines.join('\n') : 'This installation is not quiet: nothing waits to be resumed.';
      print(command, { json: { isResumed, waited }, text });
    });
}
