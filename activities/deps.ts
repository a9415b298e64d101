import type { Config } from '../config/index.ts';
import type { Database } from '../models/database/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Meters } from '../telemetry/meters.ts';
import type { Launcher } from '../temporal/launcher.ts';

/** What activities need from the launcher: to continue a thread, and to restart what was lost. */
export type WorkflowStarter = Omit<Launcher, 'startNewTurn' | 'headStartHoldMs'>;

/** What every area's activities need; each area's own `deps.ts` says what it needs besides. */
export interface CommonDeps {
  config: Config;
  database: Database;
  logger: Logger;
  meters: Meters;
  workflows: WorkflowStarter;
}
