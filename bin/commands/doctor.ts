import type { Command } from 'commander';
import { columns, print } from '../support/answer.ts';
import type { Check } from '../support/check.ts';

const marks = { ok: '✓', off: '–', wrong: '✗' } as const;

/**
 * `atrium doctor`: checks everything that Atrium needs, and says what is wrong and what to do. Exits with 1 when
 * something is wrong.
 */
export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('check what Atrium needs, and say what to do about what is wrong')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const { runChecks } = await import('../support/checks.ts');
      const checks = await runChecks();
      const healthy = checks.every((check) => check.state !== 'wrong');
      if (!healthy) process.exitCode = 1;
      print(command, { json: { healthy, checks }, text: toText(checks) });
    });
}

function toText(checks: Check[]): string {
  return columns(checks.map((check) => [`${marks[check.state]} ${check.name}`, check.detail] as const));
}
