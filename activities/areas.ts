/** Every area whose work is done in the background. `main.ts` makes the worker of them. */
export { apps } from './apps/index.ts';
export { automations } from './automations/index.ts';
export { billing } from './billing/index.ts';
export { browsers } from './browsers/index.ts';
export { chat } from './chat/index.ts';
export { computers } from './computers/index.ts';
export { databases } from './databases/index.ts';
export { desktops } from './desktops/index.ts';
export { drive } from './drive/index.ts';
export { egress } from './egress/sweeps.ts';
export { git } from './git/index.ts';
export { identity } from './identity/sweeps.ts';
export { mail } from './mail/index.ts';
export { operations } from './operations/index.ts';
export { push } from './push/pushTurn.ts';
export { secrets } from './secrets/sweeps.ts';
export { webhooks } from './webhooks/index.ts';
