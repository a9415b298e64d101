import {
  ActivityFailure,
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { patiently, promptly, rows } from '../retries.ts';
import { nextLookMs } from './rules/billing.ts';

export interface TopUpInput {
  operationId: string;
  checkoutId: string;
  /** Milliseconds to wait for news before the first question to the provider. Each later wait is twice as long. */
  firstLookMs: number;
}

/** The checkout has changed. Its row says how. */
export const checkoutChangedSignal = defineSignal('checkoutChanged');

// A person waits for the page, so attempts are few and close together. The provider's idempotency key makes them one
// session.
const { openCheckout } = proxyActivities<Activities>({
  startToCloseTimeout: '45 seconds',
  heartbeatTimeout: '10 seconds',
  retry: { ...promptly, maximumAttempts: 7 },
});

// These must happen however long the provider is down, and no person waits for them.
const { lookAtCheckout, closeCheckout } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  retry: patiently,
});

const { endCheckoutOperation } = proxyActivities<Activities>(rows);

/** One purchase: opens the hosted checkout, and watches it until it is paid, failed, expired or cancelled. */
export async function topUp({ operationId, checkoutId, firstLookMs }: TopUpInput): Promise<void> {
  let changed = false;
  setHandler(checkoutChangedSignal, () => {
    changed = true;
  });
  try {
    let { over } = await openCheckout({ checkoutId });
    for (let looks = 0; !over; looks++) {
      await condition(() => changed, nextLookMs(looks, firstLookMs));
      changed = false;
      ({ over } = await lookAtCheckout({ checkoutId }));
    }
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => closeCheckout({ checkoutId }));
    else if (!(error instanceof ActivityFailure)) throw error;
  }
  await CancellationScope.nonCancellable(() => endCheckoutOperation({ operationId, checkoutId }));
}
