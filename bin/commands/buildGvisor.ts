import type { Command } from 'commander';
import { print } from '../support/answer.ts';
import { stopOnSignals } from '../support/signals.ts';

/**
 * `atrium build-gvisor`: builds the program for the driver `gvisor`. No distribution has it, and building takes a
 * while.
 */
export function addBuildGvisor(program: Command): void {
  program
    .command('build-gvisor')
    .description('build gVisor with Go, for computers with a kernel of their own')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const { loadLaunchConfig } = await import('../../config/launch.ts');
      const { getGvisor } = await import('../../stack/gvisor.ts');
      const path = await getGvisor({
        ...loadLaunchConfig(),
        report: (line) => console.error(line),
        signal: stopOnSignals(),
      });
      const text = `gVisor is ${path}. "npm start" finds it there; for other workers, set ATRIUM_COMPUTERS_RUNSC to it.`;
      print(command, { json: { path }, text });
    });
}
