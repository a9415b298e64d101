import { type ActivityFailure, ApplicationFailure } from '@temporalio/workflow';

/** The code of an activity that failed for good; `TIMED_OUT` where it never said one. */
export function failureCode({ cause }: ActivityFailure): string {
  return cause instanceof ApplicationFailure && cause.type ? cause.type : 'TIMED_OUT';
}
