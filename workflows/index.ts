/** The workflows that workers run. A name here is its wire name: renaming one is a breaking change. */
export { autoTopUp } from './autoTopUp.ts';
export { completeUpload } from './completeUpload.ts';
export { purgeDeleted } from './purgeDeleted.ts';
export { purgeTrash } from './purgeTrash.ts';
export { reconcilePayments } from './reconcilePayments.ts';
export { runChatTurn } from './runChatTurn.ts';
export { sendMail } from './sendMail.ts';
export { settlePayment } from './settlePayment.ts';
export { setUpBilling } from './setUpBilling.ts';
export { sweep } from './sweep.ts';
export { topUp } from './topUp.ts';
