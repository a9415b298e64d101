import type { Migration } from './migrate.ts';

/** The attempts of runs: how each went, and where its log is. */
export const appAttempts: Migration = {
  name: '0038-app-attempts',
  async up({ sequelize }) {
    // `began_at` is when it was its turn, `awake_at` when its computer ran, and `woke` whether it had to be woken;
    // `started_at` when its process was known to run. `log_bytes` is what that has put out, kept or not; NULL where
    // nobody knows.
    await sequelize.query(`CREATE TABLE IF NOT EXISTS app_run_attempts (
      run_id VARCHAR(40) NOT NULL,
      attempt INT UNSIGNED NOT NULL,
      space_id VARCHAR(40) NOT NULL,
      began_at DATETIME(3) NOT NULL,
      awake_at DATETIME(3) NULL,
      woke TINYINT UNSIGNED NULL,
      started_at DATETIME(3) NULL,
      ended_at DATETIME(3) NULL,
      status VARCHAR(20) NULL,
      exit_code INT NULL,
      end_signal VARCHAR(40) NULL,
      error_code VARCHAR(80) NULL,
      error_detail VARCHAR(500) NULL,
      log_key VARCHAR(64) NULL,
      log_bytes BIGINT UNSIGNED NULL,
      PRIMARY KEY (run_id, attempt),
      KEY app_run_attempts_space (space_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`);
    // Of runs that there are already, the last attempt is known.
    await sequelize.query(`INSERT IGNORE INTO app_run_attempts (run_id, attempt, space_id, began_at, started_at,
        ended_at, status, exit_code, end_signal, error_code, error_detail, log_key, log_bytes)
      SELECT id, attempt, space_id, COALESCE(started_at, created_at),
        CASE WHEN is_started = 1 THEN COALESCE(started_at, created_at) END,
        COALESCE(ended_at, CASE WHEN retry_at IS NOT NULL THEN created_at END),
        CASE WHEN active IS NULL THEN status WHEN retry_at IS NOT NULL THEN 'failed' END,
        exit_code, end_signal, error_code, error_detail, log_key, log_bytes
      FROM app_runs WHERE attempt > 0`);
  },
};
