/** The launchers of each area. `launcher.ts` makes one of them. */
export { createAppLauncher as apps } from './apps.ts';
export { createAutomationLauncher as automations } from './automations.ts';
export { createBillingLauncher as billing } from './billing.ts';
export { createBrowserLauncher as browsers } from './browsers.ts';
export { createChatLauncher as chat } from './chat.ts';
export { createComputerLauncher as computers } from './computers.ts';
export { createDatabaseLauncher as databases } from './databases.ts';
export { createDesktopLauncher as desktops } from './desktops.ts';
export { createGitLauncher as git } from './git.ts';
export { createMailLauncher as mail } from './mail.ts';
export { createWebhookLauncher as webhooks } from './webhooks.ts';
