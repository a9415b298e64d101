/** The workflows that workers run. A name here is its wire name: renaming one is a breaking change. */
export { appRun } from './apps/appRun.ts';
export { appScheduleDue } from './apps/appScheduleDue.ts';
export { automationDue, automationRun } from './automations/automationRun.ts';
export { autoTopUp } from './billing/autoTopUp.ts';
export { reconcilePayments } from './billing/reconcilePayments.ts';
export { settlePayment } from './billing/settlePayment.ts';
export { setUpBilling } from './billing/setUpBilling.ts';
export { topUp } from './billing/topUp.ts';
export { runChatTurn } from './chat/runChatTurn.ts';
export { computer } from './computers/computer.ts';
export { spaceDatabase } from './databases/spaceDatabase.ts';
export { desktop } from './desktops/desktop.ts';
export { completeUpload } from './drive/completeUpload.ts';
export { purgeTrash } from './drive/purgeTrash.ts';
export { repository } from './git/repository.ts';
export { sendMail } from './mail/sendMail.ts';
export { purgeDeleted } from './operations/purgeDeleted.ts';
export { sweep } from './operations/sweep.ts';
