import { type Command, InvalidArgumentError } from 'commander';
import { columns, print } from '../support/answer.ts';
import type { Check } from '../support/check.ts';

const marks = { ok: '✓', slow: '~', off: '–', wrong: '✗' } as const;

/**
 * `atrium doctor`: checks everything that Atrium needs, and says what is wrong and how to fix it. Exits with 1 when
 * something is wrong.
 */
export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('check what Atrium needs, and say what to do about what is wrong')
    .option('--json', 'answer in JSON')
    .option(
      '--timeout <seconds>',
      'after how long an answer over a network is slow; five times later there is none',
      readSeconds,
      3,
    )
    .action(async ({ timeout }: { timeout: number }, command: Command) => {
      const { runChecks } = await import('../support/checks.ts');
      const checks = await runChecks(timeout * 1_000);
      const healthy = checks.every((check) => check.state !== 'wrong');
      print(command, { json: { healthy, checks }, text: toText(checks) });
      // A check that got no answer may still have an open connection, which would keep the process alive.
      process.exit(healthy ? 0 : 1);
    });
}

function toText(checks: Check[]): string {
  return columns(checks.map((check) => [`${marks[check.state]} ${check.name}`, check.detail] as const));
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (seconds > 0 && seconds <= 600) return seconds;
  throw new InvalidArgumentError('A number of seconds, at most 600.');
}
