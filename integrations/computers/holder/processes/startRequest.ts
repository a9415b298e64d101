import { DomainError } from '../../../../base/errors.ts';
import { largestSize, type Size } from '../../processes/records.ts';
import type { StartProcess } from '../../types.ts';

const maxStdinBytes = 1_048_576;
/** Linux's limits for one argument, and for all arguments and variables together. */
const maxArgumentBytes = 131_071;
const maxTotalBytes = 1_048_576;

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

export function requireSize(cols: unknown, rows: unknown): Size {
  const isSide = (side: unknown, most: number) => Number.isInteger(side) && Number(side) > 0 && Number(side) <= most;
  if (!isSide(cols, largestSize.cols) || !isSide(rows, largestSize.rows)) {
    const detail = `A terminal has 1 to ${largestSize.cols} columns and 1 to ${largestSize.rows} rows.`;
    throw refused('SIZE_INVALID', detail);
  }
  return { cols: cols as number, rows: rows as number };
}

function refused(code: string, detail: string): DomainError {
  return new DomainError('unprocessable', code, detail);
}
