import { DomainError } from '../../../../base/errors.ts';
import type { StartProcess } from '../../types.ts';

const maxStdinBytes = 1_048_576;
/** Linux's limits for one argument, and for all arguments and variables together. */
const maxArgumentBytes = 131_071;
const maxTotalBytes = 1_048_576;
const maxSide = 1_000;

/** Refuses requests with which no process can start, before the id is taken. Throws 422. */
export function requireStartable({ command, env: own, usualEnv, stdin, pty, timeoutMs }: StartProcess): void {
  const env = { ...usualEnv, ...own };
  const list = typeof command === 'string' ? [command] : command;
  const texts = [...list, ...Object.entries(env).flat()];
  if (list.length === 0 || list[0] === '') throw refused('COMMAND_INVALID', 'The command is empty.');
  if (texts.some((text) => typeof text !== 'string' || text.includes('\0'))) {
    throw refused('COMMAND_INVALID', 'The command or a variable has a character that is not allowed.');
  }
  if (Object.keys(env).some((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))) {
    throw refused('COMMAND_INVALID', 'The name of a variable is invalid.');
  }
  const lengths = texts.map((text) => Buffer.byteLength(text) + 1);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (total > maxTotalBytes || lengths.some((length) => length > maxArgumentBytes)) {
    throw refused('COMMAND_TOO_LONG', 'The command and its variables are too long.');
  }
  if (stdin !== undefined && Buffer.byteLength(stdin, 'base64') > maxStdinBytes) {
    throw refused('STDIN_TOO_LONG', 'A process begins with at most 1 MiB of input.');
  }
  if (pty !== undefined) requireSize(pty.cols, pty.rows);
  if (timeoutMs !== undefined && !(timeoutMs > 0)) throw refused('TIMEOUT_INVALID', 'The timeout is invalid.');
}

export function requireSize(cols: unknown, rows: unknown): { cols: number; rows: number } {
  if (![cols, rows].every((side) => Number.isInteger(side) && (side as number) > 0 && (side as number) <= maxSide)) {
    throw refused('SIZE_INVALID', `A terminal has 1 to ${maxSide} columns and rows.`);
  }
  return { cols: cols as number, rows: rows as number };
}

function refused(code: string, detail: string): DomainError {
  return new DomainError('unprocessable', code, detail);
}
