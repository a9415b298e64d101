import type { Migration } from './migrate.ts';

/** What keeps the apps of one space from taking the room and the places of all others. */
export const appLimits: Migration = {
  name: '0042b-app-limits',
  async up({ sequelize }) {
    const has = async (table: string, column: string) =>
      (await sequelize.query(`SHOW COLUMNS FROM ${table} LIKE '${column}'`))[0].length > 0;
    // One row per space. Whoever counts what its apps keep, or run, holds it locked.
    await sequelize.query(`CREATE TABLE IF NOT EXISTS app_usage (
      space_id VARCHAR(40) NOT NULL PRIMARY KEY,
      delivered_bytes BIGINT UNSIGNED NOT NULL DEFAULT 0
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`);
    // `kept_bytes` is what a delivery counts for in its space's usage; 0 once its content is forgotten. `content_hash`
    // tells two of one name apart where anybody may send them; elsewhere it is empty.
    if (!(await has('app_deliveries', 'kept_bytes'))) {
      await sequelize.query(`ALTER TABLE app_deliveries
        ADD COLUMN kept_bytes INT UNSIGNED NOT NULL DEFAULT 0,
        ADD COLUMN content_hash VARCHAR(64) NOT NULL DEFAULT '',
        DROP KEY app_deliveries_once,
        ADD UNIQUE KEY app_deliveries_once (app_id, component, auth, delivery_id, content_hash),
        DROP KEY app_deliveries_space,
        ADD KEY app_deliveries_space (space_id, has_content, created_at, id)`);
    }
    await sequelize.query('UPDATE app_deliveries SET kept_bytes = body_bytes WHERE has_content = 1 AND kept_bytes = 0');
    await sequelize.query(`INSERT IGNORE INTO app_usage (space_id, delivered_bytes)
      SELECT space_id, SUM(kept_bytes) FROM app_deliveries WHERE has_content = 1 GROUP BY space_id`);
    // `waits_for_space` is 1 for a run that would have its place, if fewer of its space ran.
    if (!(await has('app_runs', 'waits_for_space'))) {
      await sequelize.query(`ALTER TABLE app_runs
        ADD COLUMN waits_for_space TINYINT UNSIGNED NULL,
        DROP KEY app_runs_space,
        ADD KEY app_runs_space (space_id, status, id),
        ADD KEY app_runs_waiting (space_id, waits_for_space, id),
        ADD KEY app_runs_delivery (delivery_id, active)`);
    }
    // When a worker first had it: until then no time is counted.
    if (!(await has('app_run_attempts', 'taken_at'))) {
      await sequelize.query('ALTER TABLE app_run_attempts ADD COLUMN taken_at DATETIME(3) NULL');
    }
    // Names the present secret, so that whoever asks for it again by one Idempotency-Key gets the same.
    for (const table of ['app_webhook_secrets', 'automations']) {
      if (await has(table, 'secret_id')) continue;
      await sequelize.query(`ALTER TABLE ${table} ADD COLUMN secret_id VARCHAR(40) NULL`);
    }
    // When the manifest lost it. Whether it was paused, and why, is kept for when it comes back.
    if (!(await has('app_schedules', 'gone_at'))) {
      await sequelize.query('ALTER TABLE app_schedules ADD COLUMN gone_at DATETIME(3) NULL');
    }
  },
};
