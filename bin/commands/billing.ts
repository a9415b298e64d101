import { type Command, InvalidArgumentError } from 'commander';
import { counted } from '../../base/text.ts';
import type { Audit } from '../../models/billing/audit.ts';
import { columns, print } from '../support/answer.ts';
import { giveCredits, moveCredits, readTotals } from '../support/credits.ts';
import { withDatabase } from '../support/installation.ts';

/** `atrium billing …`: the books, for the operator. */
export function addBilling(program: Command): void {
  const billing = program.command('billing').description('credits: the books of all spaces');

  billing
    .command('check')
    .description('audit the whole ledger, while it is in use; exit code 1 on a difference')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const { audit } = await import('../../models/billing/audit.ts');
      const found = await withDatabase(audit);
      if (found.differences.length > 0) process.exitCode = 1;
      print(command, { json: found, text: describeAudit(found) });
    });

  billing
    .command('balances')
    .description('the balances of a space, or of all together, in credits')
    .option('--space <id>', 'one space')
    .option('--json', 'answer in JSON')
    .action(async ({ space }: { space?: string }, command: Command) => {
      const totals = await withDatabase((database) => readTotals(database, space));
      const rows = Object.entries(totals).map(([account, credits]) => [account, String(credits)] as const);
      print(command, { json: totals, text: columns(rows) });
    });

  billing
    .command('grant')
    .description('give a space credits')
    .argument('<space>', 'its id')
    .argument('<credits>', 'how many', toCredits)
    .option('--expires <date>', 'when what is left of them ends', toDate)
    .option('--once <name>', 'a name for this gift: the same name again gives nothing')
    .option('--json', 'answer in JSON')
    .action(async (space: string, credits: number, options: { expires?: Date; once?: string }, command: Command) => {
      const given = await withDatabase((database) => giveCredits(database, space, credits, options));
      print(command, {
        json: { given },
        text: given ? `Gave ${space} ${credits} credits.` : 'This was given before; nothing has changed.',
      });
    });

  billing
    .command('transfer')
    .description('move credits from one space to another')
    .argument('<from>', 'a space’s id')
    .argument('<to>', 'another’s')
    .argument('<credits>', 'how many', toCredits)
    .option('--once <name>', 'a name for this transfer: the same name again moves nothing')
    .option('--json', 'answer in JSON')
    .action(async (from: string, to: string, credits: number, { once }: { once?: string }, command: Command) => {
      const moved = await withDatabase((database) => moveCredits(database, from, to, credits, once));
      if (!moved) process.exitCode = 1;
      print(command, {
        json: { moved },
        text: moved ? `Moved ${credits} credits.` : `${from} has not as many, or this was moved before.`,
      });
    });
}

function describeAudit({ differences, findings, unsettledEvents, ...counts }: Audit): string {
  const { spaces, transactions, entries } = counts;
  return [
    `${counted(spaces, 'space')}, ${counted(transactions, 'transaction')}, ${entries === 1 ? '1 entry' : `${entries} entries`}`,
    ...differences.map(({ check, subject, detail }) => `✗ ${check}: ${subject} ${detail}`),
    ...findings.map(({ subjectId, finding }) => `? ${subjectId}: ${finding}`),
    ...(unsettledEvents > 0 ? [`${counted(unsettledEvents, 'notification')} without a settlement yet`] : []),
    differences.length === 0 ? '✓ The books are right.' : `✗ ${counted(differences.length, 'difference')}.`,
  ].join('\n');
}

function toCredits(text: string): number {
  const credits = Number(text);
  if (Number.isFinite(credits) && credits > 0 && credits <= 1_000_000_000) return credits;
  throw new InvalidArgumentError('It is not a number over 0.');
}

function toDate(text: string): Date {
  const date = new Date(text);
  if (!Number.isNaN(date.getTime()) && date.getTime() > Date.now()) return date;
  throw new InvalidArgumentError('It is not a date to come, such as 2031-12-31.');
}
