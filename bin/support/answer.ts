import type { Command } from 'commander';

/** What a command answers: as data for `--json`, as text for a person. */
export interface Answer {
  json: unknown;
  text: string;
}

/** Prints a command's answer to standard output. Nothing else writes there. */
export function print(command: Command, answer: Answer): void {
  console.log(wantsJson(command) ? JSON.stringify(answer.json) : answer.text);
}

export function wantsJson(command: Command): boolean {
  return command.optsWithGlobals<{ json?: boolean }>().json === true;
}

/** Lines up all columns but the last, with two spaces between them: `[['usr_1', 'ada@example.org', 'Ada']]`. */
export function columns(rows: (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join('  ');
  return rows.map((row) => `  ${line(row)}`).join('\n');
}
