import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../base/errors.ts';
import type { Logger } from '../telemetry/logger.ts';

/**
 * Returns a function that turns an error into the failure of an area's activity. The workflow's history gets only the
 * error's code, the log the whole error. Codes in `final` are not retried.
 */
export function failuresOf(logger: Logger, final: readonly string[]) {
  return (error: unknown, message: string, about: Record<string, string>): unknown => {
    if (!(error instanceof DomainError)) return error;
    logger.warn({ err: error, ...about }, message);
    const { code } = error;
    return ApplicationFailure.create({ type: code, message: code, nonRetryable: final.includes(code) });
  };
}
