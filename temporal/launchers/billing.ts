import { settlePayment } from '../../workflows/billing/settlePayment.ts';
import { checkoutChangedSignal } from '../../workflows/billing/topUp.ts';
import type { LauncherParts } from '../launcherKit.ts';
import { kindKey } from '../searchKeys.ts';
import { operationWorkflowId, settlementWorkflowId } from '../workflowIds.ts';
import { gathered } from './gathered.ts';

/** A payment that arrives together with others is credited at most this much later. */
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
    /** Settles a stored notification of the payment provider, together with others that arrive at the same time. */
    startSettlement: gathered(settle, { everyMs: settlementPaceMs, most: mostSettledAtOnce }),

    /**
     * Settles a notification that was not settled in time. Always alone: together with others its workflow would have
     * another id each time, and each of these would keep trying until it can be settled.
     */
    settleAgain: (eventId: string) => settle([eventId]),

    /** Tells a purchase's workflow that its checkout has changed. */
    checkoutChanged: ({ kind, operationId }: { kind: string; operationId: string }) =>
      kit.signal(operationWorkflowId(kind, operationId), checkoutChangedSignal),
  };
}
