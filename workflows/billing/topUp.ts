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
import { nextLookMs } from './rules/billing.ts';

export interface TopUpInput {
  operationId: string;
  checkoutId: string;
  /** How long to wait for news before the provider is asked, in milliseconds; then twice that, and so on. */
  firstLookMs: number;
}

/** Something has happened to the checkout; what it was is in its row. */
export const checkoutChangedSignal = defineSignal('checkoutChanged');

// A person waits for the page: few tries, soon after one another. The provider's idempotency key makes them one
// session.
const { openCheckout } = proxyActivities<Activities>({
  startToCloseTimeout: '45 seconds',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '300 milliseconds', maximumInterval: '5 seconds', maximumAttempts: 6 },
});

// Nobody waits for these, and they have to happen: the provider may be away for as long as it likes.
const { lookAtCheckout, closeCheckout } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute' },
});

// Rows only.
const { endCheckoutOperation } = proxyActivities<Activities>({
  startToCloseTimeout: '15 seconds',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute' },
});

/**
 * One purchase: opens the hosted checkout, and watches it until it is paid, has failed, has expired or is called off.
 */
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
