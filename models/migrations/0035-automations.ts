import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Chat turns that start by themselves, and what has started them. */
export const automations: Migration = {
  name: '0035-automations',
  async up({ sequelize }) {
    const tables = [
      // `next_run_at` is the next tick of its schedule; null where there is none, or while it is paused. `version`
      // tells a schedule in Temporal that is behind from one that is not.
      `CREATE TABLE IF NOT EXISTS automations (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        made_by_turn_id VARCHAR(40) NULL,
        thread_id VARCHAR(40) NOT NULL,
        name VARCHAR(200) NOT NULL,
        prompt MEDIUMTEXT NOT NULL,
        model_id VARCHAR(200) NULL,
        effort VARCHAR(40) NULL,
        mode VARCHAR(10) NOT NULL,
        files MEDIUMTEXT NOT NULL,
        cron VARCHAR(200) NULL,
        time_zone VARCHAR(100) NULL,
        run_at DATETIME(3) NULL,
        overlap ENUM('skip','queue','interrupt') NOT NULL,
        enabled TINYINT(1) NOT NULL,
        pause_code VARCHAR(80) NULL,
        pause_detail VARCHAR(500) NULL,
        paused_at DATETIME(3) NULL,
        failures INT UNSIGNED NOT NULL DEFAULT 0,
        next_run_at DATETIME(3) NULL,
        last_run_at DATETIME(3) NULL,
        cost_micro BIGINT NOT NULL DEFAULT 0,
        version INT UNSIGNED NOT NULL DEFAULT 1,
        scopes MEDIUMTEXT NULL,
        api_key_id VARCHAR(40) NULL,
        secret MEDIUMBLOB NULL,
        old_secret MEDIUMBLOB NULL,
        old_secret_until DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        deleted_at DATETIME(3) NULL,
        KEY automations_space (space_id, user_id, id),
        KEY automations_due (next_run_at),
        KEY automations_deleted (deleted_at)
      )`,
      // `trigger_key` is what started it: one of a kind for each automation, for ever. `payload` is here until the run
      // has its turn, whose message then has it.
      `CREATE TABLE IF NOT EXISTS automation_runs (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        automation_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        kind ENUM('schedule','webhook','manual') NOT NULL,
        trigger_key VARCHAR(255) NOT NULL,
        scheduled_at DATETIME(3) NULL,
        status ENUM('pending','started','completed','failed','stopped','skipped') NOT NULL,
        code VARCHAR(80) NULL,
        detail VARCHAR(500) NULL,
        turn_id VARCHAR(40) NULL,
        payload MEDIUMTEXT NULL,
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
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
