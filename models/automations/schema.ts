import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Chat turns that start by themselves, and their runs. */
const initial = initialTables('automations', [
  // Chat turns that start by themselves.
  `CREATE TABLE IF NOT EXISTS automations (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    user_id VARCHAR(40) NOT NULL,
    made_by_turn_id VARCHAR(40) NULL, -- the turn whose agent made it; NULL for a person
    thread_id VARCHAR(40) NOT NULL,
    name VARCHAR(200) NOT NULL,
    prompt MEDIUMTEXT NOT NULL,
    model_id VARCHAR(200) NULL, -- NULL for the default of the space at that time
    effort VARCHAR(40) NULL,
    mode VARCHAR(10) NOT NULL,
    files MEDIUMTEXT NOT NULL, -- JSON
    cron VARCHAR(200) NULL,
    time_zone VARCHAR(100) NULL,
    run_at DATETIME(3) NULL,
    overlap ENUM('skip','queue','interrupt') NOT NULL, -- what happens to a run while the one before has not ended
    enabled TINYINT(1) NOT NULL,
    pause_code VARCHAR(80) NULL, -- why it paused itself
    pause_detail VARCHAR(500) NULL,
    paused_at DATETIME(3) NULL,
    failures INT UNSIGNED NOT NULL DEFAULT 0, -- failed runs in a row
    next_run_at DATETIME(3) NULL, -- next tick of its schedule; NULL without one or while it is paused
    last_run_at DATETIME(3) NULL,
    cost_micro BIGINT NOT NULL DEFAULT 0,
    version INT UNSIGNED NOT NULL DEFAULT 1, -- tells whether the schedule in Temporal is up to date
    scopes MEDIUMTEXT NULL, -- JSON list of what its runs may do; NULL for a person
    api_key_id VARCHAR(40) NULL,
    secret_id VARCHAR(40) NULL, -- names the present secret, for repeated requests with one Idempotency-Key
    secret MEDIUMBLOB NULL, -- what senders sign with, sealed
    old_secret MEDIUMBLOB NULL, -- holds until old_secret_until
    old_secret_until DATETIME(3) NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    deleted_at DATETIME(3) NULL,
    KEY automations_space (space_id, user_id, id),
    KEY automations_due (next_run_at),
    KEY automations_deleted (deleted_at)
  )`,
  `CREATE TABLE IF NOT EXISTS automation_runs (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    automation_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    kind ENUM('schedule','webhook','manual') NOT NULL,
    trigger_key VARCHAR(255) NOT NULL, -- what started it; unique for each automation, for ever
    scheduled_at DATETIME(3) NULL,
    status ENUM('pending','started','completed','failed','stopped','skipped') NOT NULL,
    code VARCHAR(80) NULL, -- why it was skipped or failed
    detail VARCHAR(500) NULL,
    turn_id VARCHAR(40) NULL,
    payload MEDIUMTEXT NULL, -- what a webhook sent; NULL once the turn has it
    cost_micro BIGINT NULL,
    created_at DATETIME(3) NOT NULL,
    started_at DATETIME(3) NULL,
    ended_at DATETIME(3) NULL,
    UNIQUE KEY automation_runs_trigger (automation_id, trigger_key),
    KEY automation_runs_list (automation_id, id),
    KEY automation_runs_open (automation_id, status),
    KEY automation_runs_recent (automation_id, created_at),
    KEY automation_runs_sweep (status, created_at),
    KEY automation_runs_old (kind, id),
    KEY automation_runs_space (space_id)
  )`,
]);

/** Automations first: a run is only added while its automation is there. */
export const automationsSchema: AreaSchema = {
  initial,
  ofSpace: ['automations', 'automation_runs'],
};
