import { type Command, InvalidArgumentError } from 'commander';
import type { Part } from '../../models/identity/overview.ts';
import { columns, print } from './answer.ts';

const maxLimit = 10_000;

/** The options of a command that prints a list. */
export function addListOptions(command: Command): Command {
  return command
    .option('--limit <n>', `how many, at most ${maxLimit}`, parseLimit, 200)
    .option('--after <id>', 'those after this one, which was the last of the list before')
    .option('--json', 'answer in JSON');
}

/** Prints a list, and how to continue where there may be more. */
export function printList<Row extends { id: string }>(
  command: Command,
  rows: readonly Row[],
  { limit }: Part,
  { none, cells }: { none: string; cells: (row: Row) => readonly string[] },
): void {
  const more = rows.length < limit ? [] : [`There may be more: --after ${rows.at(-1)?.id}`];
  const text = rows.length === 0 ? none : [columns(rows.map((row) => [row.id, ...cells(row)])), ...more].join('\n');
  print(command, { json: rows, text });
}

/** The day alone, which is enough for a person; `--json` has the time. */
export function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit;
  throw new InvalidArgumentError(`A whole number from 1 to ${maxLimit}.`);
}
