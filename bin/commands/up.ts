import type { Command } from 'commander';
import type { Report } from '../../stack/report.ts';
import { wantsJson } from '../support/answer.ts';
import { readyScreen, type ScreenFacts } from '../support/screen.ts';

/**
 * `atrium up`, which is `npm start`: runs all of Atrium in one process, with every part that is not configured
 * elsewhere.
 */
export function addUp(program: Command): void {
  program
    .command('up')
    .description('get and start everything on this machine, until Ctrl-C')
    .option('--watch', 'for developers: restart the API and the worker when their code changes, and keep the rest')
    .option('--json', 'print one line of JSON when it is ready')
    .action(async ({ watch = false }: { watch?: boolean }, command: Command) => {
      const json = wantsJson(command);
      // With --json, only the answer goes to standard output.
      const report: Report = (line) => (json ? console.error(line) : console.log(line));
      // Loaded lazily, since only this command needs it.
      const { up } = await import('../support/up.ts');
      const show = (facts: ScreenFacts) => console.log(json ? JSON.stringify(facts) : readyScreen(facts));
      process.exit(await up(report, show, { watch }));
    });
}
