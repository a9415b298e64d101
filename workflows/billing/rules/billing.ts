import { isCancellation } from '@temporalio/workflow';

const minuteMs = 60_000;

/**
 * How long to wait before checking a checkout again when there is no news of it. Notifications come within seconds;
 * these checks are for those that never come, so they get rarer.
 */
export function nextLookMs(looks: number, firstLookMs: number): number {
  return Math.min(firstLookMs * 2 ** Math.min(looks, 10), 60 * minuteMs);
}

/** How an operation ends when the payment provider has refused it, or somebody has cancelled it. */
export function endOfFailure(error: unknown) {
  return isCancellation(error)
    ? ({ status: 'cancelled' } as const)
    : ({
        status: 'failed',
        code: 'PAYMENT_PROVIDER_FAILED',
        detail: 'The payment provider did not do what was asked of it.',
      } as const);
}
