import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../base/errors.ts';
import type { Logger } from '../telemetry/logger.ts';

/**
 * Makes the failures of an area's activities. A history gets only the error's code; the log gets the whole error. Another
 * attempt cannot help against the `final` codes.
 */
export function failuresOf(logger: Logger, final: readonly string[]) {
  return (error: unknown, message: string, about: Record<string, string>): unknown => {
    if (!(error instanceof DomainError)) return error;
    logger.warn({ err: error, ...about }, message);
    const { code } = error;
    return ApplicationFailure.create({ type: code, message: code, nonRetryable: final.includes(code) });
  };
}
