import { settlePayment } from '../../workflows/billing/settlePayment.ts';
import { checkoutChangedSignal } from '../../workflows/billing/topUp.ts';
import type { LauncherKit } from '../launcherKit.ts';
import { kindKey } from '../searchKeys.ts';
import { operationWorkflowId, settlementWorkflowId } from '../workflowIds.ts';

export function createBillingLauncher(kit: LauncherKit) {
  return {
    /** Settles a stored notification of the payment provider. */
    startSettlement: (eventId: string) =>
      kit.start(settlePayment, {
        workflowId: settlementWorkflowId(eventId),
        args: [{ eventId }],
        attributes: [{ key: kindKey, value: 'settlePayment' }],
        mayStartAgain: true,
      }),

    /** Tells a purchase's workflow that its checkout has changed. */
    checkoutChanged: ({ kind, operationId }: { kind: string; operationId: string }) =>
      kit.signal(operationWorkflowId(kind, operationId), checkoutChangedSignal),
  };
}
