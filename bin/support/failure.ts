import { BackupError } from '../../backup/errors.ts';
import { DomainError } from '../../base/errors.ts';
import { ConfigError } from '../../config/index.ts';
import { MigrationLockError, UnknownSchemaError } from '../../models/migrations/migrate.ts';
import { StackError } from '../../stack/errors.ts';
import { commandLine } from './commandLine.ts';
import { StoppedError } from './signals.ts';

/** Says what failed and how to fix it, in one line. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

const expected = [
  BackupError,
  CommandFailure,
  ConfigError,
  DomainError,
  MigrationLockError,
  UnknownSchemaError,
  StackError,
  StoppedError,
];

/** One line for errors that a person can fix, a stack for our own bugs. */
export function describeFailure(error: unknown): string {
  if (expected.some((type) => error instanceof type)) return (error as Error).message;
  const unreachable = findUnreachable(error);
  if (unreachable !== undefined) return unreachable;
  if (!(error instanceof Error)) return String(error);
  // Sequelize sets the message after the stack is taken, so the stack alone does not say what happened.
  const stack = error.stack ?? '';
  return stack.includes(error.message) ? stack : `${error.message}\n${stack}`;
}

interface NetworkError {
  code?: string;
  address?: string;
  port?: number;
  hostname?: string;
  cause?: unknown;
  parent?: unknown;
}

/** Drivers wrap the socket's error. The address in the innermost error helps most. */
function findUnreachable(error: unknown): string | undefined {
  for (let current = error as NetworkError | undefined; current != null; ) {
    const { code, address, port, hostname } = current;
    if (code === 'ECONNREFUSED' || code === 'ETIMEDOUT' || code === 'ENOTFOUND') {
      const where = hostname ?? (address === undefined ? 'a configured address' : `${address}:${port}`);
      return `${where} does not answer (${code}). Start what should be there, or correct its address; "${commandLine} doctor" says which one it is.`;
    }
    current = (current.cause ?? current.parent) as NetworkError | undefined;
  }
  return undefined;
}
