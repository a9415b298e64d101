import type { Config } from '../config/index.ts';
import type { Database } from '../models/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Launcher } from '../temporal/launcher.ts';

/** What activities need of the launcher: to go on with a thread, and to look after what was lost. */
export type WorkflowStarter = Omit<Launcher, 'startNewTurn'>;

/** What every area's activities are made of; each area's own `deps.ts` says what it needs besides. */
export interface CommonDeps {
  config: Config;
  database: Database;
  logger: Logger;
  workflows: WorkflowStarter;
}
