/** Every area that has tables. `migrations/index.ts` makes them, and `purge.ts` empties them. */
export { appsSchema as apps } from './apps/schema.ts';
export { automationsSchema as automations } from './automations/schema.ts';
export { billingSchema as billing } from './billing/schema.ts';
export { browsersSchema as browsers } from './browsers/schema.ts';
export { chatSchema as chat } from './chat/schema.ts';
export { computersSchema as computers } from './computers/schema.ts';
export { databasesSchema as databases } from './databases/schema.ts';
export { desktopsSchema as desktops } from './desktops/schema.ts';
export { driveSchema as drive } from './drive/schema.ts';
export { egressSchema as egress } from './egress/schema.ts';
export { gitSchema as git } from './git/schema.ts';
export { identitySchema as identity } from './identity/schema.ts';
export { mailSchema as mail } from './mail/schema.ts';
export { mcpSchema as mcp } from './mcp/schema.ts';
export { pushSchema as push } from './push/schema.ts';
export { secretsSchema as secrets } from './secrets/schema.ts';
export { webhooksSchema as webhooks } from './webhooks/schema.ts';
