import { isCancellation } from '@temporalio/workflow';

const minuteMs = 60_000;

/**
 * How long to wait before checking a checkout without news again. Notifications come within seconds. These checks are
 * for lost ones, so they get rarer.
 */
export function nextLookMs(looks: number, firstLookMs: number): number {
  return Math.min(firstLookMs * 2 ** Math.min(looks, 10), 60 * minuteMs);
}

/** The end of an operation whose payment provider refused, or that was cancelled. */
export function endOfFailure(error: unknown) {
  return isCancellation(error)
    ? ({ status: 'cancelled' } as const)
    : ({
        status: 'failed',
        code: 'PAYMENT_PROVIDER_FAILED',
        detail: 'The payment provider did not do what was asked of it.',
      } as const);
}
