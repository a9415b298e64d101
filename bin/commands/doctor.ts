import { type Command, InvalidArgumentError } from 'commander';
import { loadLaunchConfig } from '../../config/launch.ts';
import { columns, print } from '../support/answer.ts';
import { type Check, off, wrong } from '../support/check.ts';

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
    .option(
      '--deep',
      'also try on a computer in a space of its own that no file is lost when computers end; takes minutes',
    )
    .option('--cycles <number>', 'how often --deep tries', readCount, 100)
    .action(async ({ timeout, deep, cycles }: DoctorOptions, command: Command) => {
      const { runChecks } = await import('../support/checks.ts');
      const checks = await runChecks(timeout * 1_000);
      if (deep === true) checks.push(await tryHomes(cycles));
      const healthy = checks.every((check) => check.state !== 'wrong');
      print(command, { json: { healthy, checks }, text: toText(checks) });
      // A check that got no answer may still have an open connection, which would keep the process alive.
      process.exit(healthy ? 0 : 1);
    });
}

interface DoctorOptions {
  timeout: number;
  deep?: true;
  cycles: number;
}

async function tryHomes(cycles: number): Promise<Check> {
  const { checkHomes } = await import('../support/checkHomes.ts');
  const { findRunning } = await import('../support/running.ts');
  const { withIdentity } = await import('../support/installation.ts');
  const apiUrl = findRunning(loadLaunchConfig().dataDir)?.apiUrl;
  const name = 'files of computers';
  if (apiUrl === undefined) return { name, ...off('Atrium does not run here; "npm start" starts it') };
  try {
    return { name, ...(await withIdentity((identity) => checkHomes({ apiUrl, identity, cycles }))) };
  } catch (error) {
    return { name, ...wrong(error instanceof Error ? error.message : String(error)) };
  }
}

function toText(checks: Check[]): string {
  return columns(checks.map((check) => [`${marks[check.state]} ${check.name}`, check.detail] as const));
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (seconds > 0 && seconds <= 600) return seconds;
  throw new InvalidArgumentError('A number of seconds, at most 600.');
}

function readCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0 && count <= 10_000) return count;
  throw new InvalidArgumentError('A whole number from 1 to 10,000.');
}
