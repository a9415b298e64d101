import { settlePayment } from '../../workflows/billing/settlePayment.ts';
import { checkoutChangedSignal } from '../../workflows/billing/topUp.ts';
import type { LauncherParts } from '../launcherKit.ts';
import { kindKey } from '../searchKeys.ts';
import { operationWorkflowId, settlementWorkflowId } from '../workflowIds.ts';
import { gathered } from './gathered.ts';

/** So much later at most is a payment credited that comes with others. */
const settlementPaceMs = 50;
const mostSettledAtOnce = 100;

export function createBillingLauncher({ kit }: Pick<LauncherParts, 'kit'>) {
  const settle = (eventIds: [string, ...string[]]) =>
    kit.start(settlePayment, {
      workflowId: settlementWorkflowId(eventIds),
      args: [{ eventIds }],
      attributes: [{ key: kindKey, value: 'settlePayment' }],
      mayStartAgain: true,
    });
  return {
    /** Settles a stored notification of the payment provider, with those that come at the same time. */
    startSettlement: gathered(settle, { everyMs: settlementPaceMs, most: mostSettledAtOnce }),

    /**
     * The same for one that was not settled in time. Alone, however often: with others its workflow would have another
     * name each time, and each would try for as long as it cannot be settled.
     */
    settleAgain: (eventId: string) => settle([eventId]),

    /** Tells a purchase's workflow that its checkout has changed. */
    checkoutChanged: ({ kind, operationId }: { kind: string; operationId: string }) =>
      kit.signal(operationWorkflowId(kind, operationId), checkoutChangedSignal),
  };
}
