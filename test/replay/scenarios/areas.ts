/** The scenarios of each area. */
export { appScenarios as apps } from './apps.ts';
export { automationScenarios as automations } from './automations.ts';
export { billingScenarios as billing } from './billing.ts';
export { browserScenarios as browsers } from './browsers.ts';
export { chatScenarios as chat } from './chat.ts';
export { chatContextScenarios as chatContext } from './chatContext.ts';
export { computerScenarios as computers } from './computers.ts';
export { databaseScenarios as databases } from './databases.ts';
export { desktopScenarios as desktops } from './desktops.ts';
export { driveScenarios as drive } from './drive.ts';
export { gitScenarios as git } from './git.ts';
export { mailScenarios as mail } from './mail.ts';
export { operationScenarios as operations } from './operations.ts';
export { webhookScenarios as webhooks } from './webhooks.ts';
