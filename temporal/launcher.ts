import type { Client } from '@temporalio/client';
import type { Config } from '../config/index.ts';
import type { Logger } from '../telemetry/logger.ts';
import { createLauncherKit } from './launcherKit.ts';
import { createActorLauncher } from './launchers/actors.ts';
import { createAppScheduleLauncher } from './launchers/appSchedules.ts';
import { createAutomationLauncher } from './launchers/automations.ts';
import { createBillingLauncher } from './launchers/billing.ts';
import { createChatLauncher, type HeadStart } from './launchers/chat.ts';
import { createDatabaseLauncher } from './launchers/databases.ts';
import { createMailLauncher } from './launchers/mail.ts';
import { createOperationLauncher } from './launchers/operations.ts';
import { createScheduleKit } from './schedules/scheduleKit.ts';

/**
 * Starts and signals all workflows, with one function for each. Their ids are made from rows. An area adds a file in
 * `launchers/` and a line here.
 */
export function createLauncher(options: {
  client: Client;
  config: Config;
  logger: Logger;
  /**
   * Whether a worker of this process shares the client's connection, so that it can get a workflow's first task at
   * once.
   */
  sharesWorkersConnection: boolean;
  headStart?: HeadStart;
}) {
  const { config, headStart, logger } = options;
  const kit = createLauncherKit(options);
  const schedules = createScheduleKit(options);
  const actors = createActorLauncher(kit, config);
  return {
    ...createChatLauncher(kit, config, headStart),
    ...actors,
    ...createOperationLauncher(kit, config, logger, actors),
    ...createDatabaseLauncher(kit, config),
    ...createMailLauncher(kit),
    ...createBillingLauncher(kit),
    ...createAppScheduleLauncher(schedules, config),
    ...createAutomationLauncher(kit, schedules, config),
  };
}

export type Launcher = ReturnType<typeof createLauncher>;
