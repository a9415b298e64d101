import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import type { Logger } from '../../telemetry/logger.ts';

/** What will not be better for being tried again. */
const final = new Set([
  'BROWSERS_UNAVAILABLE',
  'BROWSER_ENDED',
  'COMPUTER_NOT_RUNNING',
  'NOT_FOUND',
  'PROCESS_ID_TAKEN',
  'PROFILE_BROKEN',
  'PROFILE_IN_USE',
  'PROFILE_NOT_OPENED',
  'PROFILE_NOT_PACKED',
  'PROFILE_OVERTAKEN',
  'PROFILE_TOO_LARGE',
  'PROFILE_UNUSABLE',
  'QUOTA_EXCEEDED',
  'DISK_FULL',
]);

interface Of {
  logger: Logger;
  sessionId: string;
  /** It needs no more of a computer than its files, which can be reached again once that has started or stopped. */
  needsFilesOnly?: boolean;
}

/** What exactly went wrong is in the log, and not in the history. */
export function failureOf(error: unknown, { logger, sessionId, needsFilesOnly = false }: Of, what: string) {
  if (!(error instanceof DomainError)) return error;
  logger.warn({ err: error, sessionId }, what);
  const { code } = error;
  const nonRetryable = final.has(code) && !(needsFilesOnly && code === 'COMPUTER_NOT_RUNNING');
  return ApplicationFailure.create({ type: code, message: code, nonRetryable });
}
