import { createCheckoutActivities } from './billing/checkouts.ts';
import { createReconciliation } from './billing/reconcile.ts';
import { createStorageMetering } from './billing/storage.ts';
import { createBillingUpkeep } from './billing/upkeep.ts';
import { createCallModel } from './chat/callModel.ts';
import { createEndTurn } from './chat/endTurn.ts';
import { createNameThread } from './chat/nameThread.ts';
import { createParking } from './chat/parkTools.ts';
import { createRunTool } from './chat/runTool.ts';
import { createSummarizeThread } from './chat/summarizeThread.ts';
import type { ActivityDeps } from './deps.ts';
import { createFinishUpload } from './drive/finishUpload.ts';
import { createDrivePurges } from './drive/purges.ts';
import { createDriveSweeps } from './drive/sweeps.ts';
import { createMailActivities } from './mail/deliverMail.ts';
import { createPurges } from './operations/purges.ts';
import { createSweeps } from './operations/sweeps.ts';
import { createPushTurn } from './push/pushTurn.ts';

/** Every activity, by the name that workflows call it. */
export function createActivities(deps: ActivityDeps) {
  return {
    callModel: createCallModel(deps),
    summarizeThread: createSummarizeThread(deps),
    runTool: createRunTool(deps),
    endTurn: createEndTurn(deps),
    nameThread: createNameThread(deps),
    pushTurn: createPushTurn(deps),
    ...createParking(deps),
    ...createSweeps(deps),
    ...createPurges(deps),
    ...createCheckoutActivities(deps),
    ...createBillingUpkeep(deps),
    ...createDrivePurges(deps),
    ...createDriveSweeps(deps),
    finishUpload: createFinishUpload(deps),
    ...createMailActivities(deps),
    ...createReconciliation(deps),
    ...createStorageMetering(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;
