import type { Config } from '../config/index.ts';
import type { Database } from '../models/database/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Meters } from '../telemetry/meters.ts';
import type { Launcher } from '../temporal/launcher.ts';

/** The part of the launcher that activities use: to continue a thread, and to restart what was lost. */
export type WorkflowStarter = Omit<Launcher, 'startNewTurn' | 'headStartHoldMs'>;

/** The dependencies of every area's activities. Each area's own `deps.ts` adds more. */
export interface CommonDeps {
  config: Config;
  database: Database;
  logger: Logger;
  meters: Meters;
  workflows: WorkflowStarter;
}
