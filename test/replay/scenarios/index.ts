import { appScenarios } from './apps.ts';
import { automationScenarios } from './automations.ts';
import { billingScenarios } from './billing.ts';
import { browserScenarios } from './browsers.ts';
import { chatScenarios } from './chat.ts';
import { chatContextScenarios } from './chatContext.ts';
import { computerScenarios } from './computers.ts';
import { databaseScenarios } from './databases.ts';
import { desktopScenarios } from './desktops.ts';
import { driveScenarios } from './drive.ts';
import { gitScenarios } from './git.ts';
import { mailScenarios } from './mail.ts';
import { operationScenarios } from './operations.ts';
import type { Scenario } from './scenario.ts';
import { webhookScenarios } from './webhooks.ts';

/** Every scenario whose history is saved, in one file per area. */
export const scenarios: Scenario[] = [
  ...appScenarios,
  ...automationScenarios,
  ...billingScenarios,
  ...browserScenarios,
  ...chatScenarios,
  ...chatContextScenarios,
  ...computerScenarios,
  ...desktopScenarios,
  ...databaseScenarios,
  ...driveScenarios,
  ...gitScenarios,
  ...mailScenarios,
  ...operationScenarios,
  ...webhookScenarios,
];
