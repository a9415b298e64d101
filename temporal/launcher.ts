import type { Client } from '@temporalio/client';
import type { All } from '../base/all.ts';
import type { Config } from '../config/index.ts';
import type { Logger } from '../telemetry/logger.ts';
import { createLauncherKit, type HeadStart, type LauncherParts } from './launcherKit.ts';
import * as areas from './launchers/areas.ts';
import { createOperationLauncher } from './launchers/operations.ts';
import { createScheduleKit } from './schedules/scheduleKit.ts';

type AnyLauncher = ReturnType<(typeof areas)[keyof typeof areas]>;

/** Starts and signals all workflows, by function, with ids made from the row. */
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
  const parts: LauncherParts = {
    kit: createLauncherKit(options),
    schedules: createScheduleKit(options),
    config,
    logger,
    headStart,
  };
  const made = Object.values<(parts: LauncherParts) => object>(areas).map((create) => create(parts));
  const launchers = Object.assign({}, ...made) as All<AnyLauncher>;
  return { ...launchers, ...createOperationLauncher(parts, launchers) };
}

export type Launcher = ReturnType<typeof createLauncher>;
