import type { Migration } from './migrate.ts';

/** What was run of apps, what is running, and what waits for it. */
export const appRuns: Migration = {
  name: '0034b-app-runs',
  async up({ sequelize }) {
    // `active` is 1 until it has ended, then NULL. `spec` is its component as the manifest said when it was asked for.
    // `trigger_key` names what caused it: nothing causes two. `attempt` counts the starts; `is_started` says that the
    // process of this one is known to have begun, and `retry_at` when there is to be another.
    await sequelize.query(`CREATE TABLE IF NOT EXISTS app_runs (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      app_id VARCHAR(40) NOT NULL,
      item_id VARCHAR(40) NOT NULL,
      space_id VARCHAR(40) NOT NULL,
      component VARCHAR(63) NOT NULL,
      spec MEDIUMTEXT NOT NULL,
      trigger_kind VARCHAR(20) NOT NULL,
      trigger_key VARCHAR(200) NULL,
      user_id VARCHAR(40) NOT NULL,
      api_key_id VARCHAR(40) NULL,
      scopes TEXT NULL,
      status VARCHAR(20) NOT NULL,
      active TINYINT UNSIGNED NULL,
      attempt INT UNSIGNED NOT NULL,
      is_started TINYINT UNSIGNED NOT NULL,
      retry_at DATETIME(3) NULL,
      exit_code INT NULL,
      end_signal VARCHAR(40) NULL,
      error_code VARCHAR(80) NULL,
      error_detail VARCHAR(500) NULL,
      output MEDIUMTEXT NULL,
      log_key VARCHAR(64) NULL,
      log_bytes BIGINT UNSIGNED NULL,
      cancel_requested_at DATETIME(3) NULL,
      created_at DATETIME(3) NOT NULL,
      started_at DATETIME(3) NULL,
      ended_at DATETIME(3) NULL,
      UNIQUE KEY app_runs_trigger (app_id, trigger_key),
      KEY app_runs_app (app_id, id),
      KEY app_runs_component (app_id, component, status, id),
      KEY app_runs_active (active, created_at, id),
      KEY app_runs_ended (ended_at, id),
      KEY app_runs_space (space_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`);
  },
};
