import { autoTopUp } from '../../workflows/billing/autoTopUp.ts';
import { setUpBilling } from '../../workflows/billing/setUpBilling.ts';
import { topUp } from '../../workflows/billing/topUp.ts';
import { type OperationDefinition, start } from './operation.ts';

export const billingOperations = {
  setUpBilling: {
    scope: 'billing',
    start: ({ id, subjectId }) => start(setUpBilling, { operationId: id, spaceId: subjectId }),
    failures: {},
  },
  topUp: {
    scope: 'billing',
    start: ({ id, subjectId }, { billing }) =>
      start(topUp, { operationId: id, checkoutId: subjectId, firstLookMs: billing.checkoutLookMs }),
    failures: {},
  },
  autoTopUp: {
    scope: 'billing',
    start: ({ id, subjectId }) => start(autoTopUp, { operationId: id, checkoutId: subjectId }),
    failures: {},
  },
} satisfies Record<string, OperationDefinition>;
