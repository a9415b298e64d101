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
  /** How long to wait for news before asking the provider, in milliseconds; then twice that, and so on. */
  firstLookMs: number;
}

/** Something has happened to the checkout; its row says what. */
export const checkoutChangedSignal = defineSignal('checkoutChanged');

// A person waits for the page: few attempts, close together. The provider's idempotency key makes them one session.
const { openCheckout } = proxyActivities<Activities>({
  startToCloseTimeout: '45 seconds',
  heartbeatTimeout: '10 seconds',
  retry: { ...promptly, maximumAttempts: 7 },
});

// Nobody waits for these, and they have to happen, however long the provider is down.
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
