import { DomainError, type DomainErrorKind } from '../../../base/errors.ts';

/** What the agent may refuse with, and what that is for whoever asked. */
const refusals: Record<string, [DomainErrorKind, string]> = {
  CWD_NOT_FOUND: ['unprocessable', 'The working folder does not exist.'],
  COMMAND_NOT_FOUND: ['unprocessable', 'There is no such program.'],
  COMMAND_NOT_STARTED: ['unprocessable', 'The program cannot be started.'],
  COMMAND_TOO_LONG: ['unprocessable', 'The command and its variables are too long.'],
  TOO_MANY_TASKS: ['rateLimited', 'The computer runs as many tasks as it may, or has no memory left.'],
  PROCESS_ENDED: ['conflict', 'The process has ended.'],
  PORT_NOT_LISTENING: ['upstream', 'Nothing listens on this port of the computer.'],
  SOCKET_NOT_LISTENING: ['upstream', 'Nothing listens on this socket of the computer.'],
  PATH_INVALID: ['unprocessable', 'The path is invalid.'],
  FILE_NOT_FOUND: ['notFound', 'There is no such file or folder.'],
  FILE_ACCESS_DENIED: ['forbidden', 'The computer’s user may not do this with the file.'],
  FILE_EXISTS: ['conflict', 'There is a file or folder of this name.'],
  FOLDER_NOT_EMPTY: ['conflict', 'The folder is not empty.'],
  NOT_A_FILE: ['unprocessable', 'This is not a regular file.'],
  DISK_FULL: ['unprocessable', 'The computer’s disk is full.'],
  RANGE_NOT_SATISFIABLE: ['rangeNotSatisfiable', 'The file is not so long.'],
  PRECONDITION_FAILED: ['preconditionFailed', 'The file has another version.'],
};

export function refusalOf(code: string): DomainError {
  const refusal = refusals[code];
  if (refusal === undefined) return new DomainError('upstream', 'COMPUTER_FAILED', 'The computer could not do this.');
  return new DomainError(refusal[0], code, refusal[1]);
}
