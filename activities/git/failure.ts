import { ApplicationFailure, activityInfo } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import { mayPass } from '../../integrations/git/rules/failures.ts';
import { isAway } from '../../models/database/unavailable.ts';
import type { GitOrder } from '../../models/git/orders.ts';
import { calledOff } from '../../models/git/steps.ts';

/** How often something is tried that fails in ways that may pass. */
const attempts = 3;

/** What has failed, for people; git's own words are not. */
export function describe(error: unknown): { code: string; detail: string } {
  if (error instanceof DomainError) return { code: error.code, detail: error.message };
  return { code: 'GIT_FAILED', detail: 'It could not be done; the log says why.' };
}

/** The same of a merge that has committed first what was in no commit: that stays. */
export function withCommitted(
  { code, detail }: ReturnType<typeof describe>,
  { result }: Pick<GitOrder, 'result'>,
): ReturnType<typeof describe> {
  const committed = result?.committed;
  if (typeof committed !== 'string') return { code, detail };
  return { code, detail: `${detail} What was not committed in the draft is now: ${committed.slice(0, 10)}.` };
}

/**
 * An error for the workflow, by its code alone. It is tried again for as long as a part of Atrium is away, and a few
 * times where the other side may be to blame.
 */
export function failureOf(error: unknown): ApplicationFailure {
  const { code } = describe(error);
  const mayBeAgain = isAway(error) || isFull(error) || (mayPass(error) && activityInfo().attempt < attempts);
  return ApplicationFailure.create({ type: code, message: code, nonRetryable: !mayBeAgain });
}

/** There is a place for it as soon as others have done. */
function isFull(error: unknown): boolean {
  return error instanceof DomainError && (error.code === 'FILES_BUSY' || error.code === 'TOO_MANY_PROCESSES');
}

/** Nobody wants it of the repository any more. */
export function notOrdered(): ApplicationFailure {
  return ApplicationFailure.create({ type: 'NOT_ORDERED', message: 'NOT_ORDERED', nonRetryable: true });
}

/** Somebody has called it off, and the workflow may not know it yet. */
export function wasCalledOff(): ApplicationFailure {
  return ApplicationFailure.create({ type: calledOff, message: calledOff, nonRetryable: true });
}
