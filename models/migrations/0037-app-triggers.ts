import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** What runs of apps are caused by: deliveries to their webhooks, and schedules. */
export const appTriggers: Migration = {
  name: '0037-app-triggers',
  async up({ sequelize }) {
    const tables = [
      // One for each delivery id, kind of proof and component, for as long as there is the app. `has_content` is 1 until
      // the method, query, headers and body of the delivery are forgotten, then NULL.
      `CREATE TABLE IF NOT EXISTS app_deliveries (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        app_id VARCHAR(40) NOT NULL,
        item_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        component VARCHAR(63) NOT NULL,
        auth VARCHAR(20) NOT NULL,
        delivery_id VARCHAR(200) NULL,
        run_id VARCHAR(40) NOT NULL,
        method VARCHAR(10) NOT NULL,
        query TEXT NULL,
        headers MEDIUMTEXT NULL,
        body MEDIUMBLOB NULL,
        body_bytes INT UNSIGNED NOT NULL,
        has_content TINYINT UNSIGNED NULL,
        created_at DATETIME(3) NOT NULL,
        UNIQUE KEY app_deliveries_once (app_id, component, auth, delivery_id),
        KEY app_deliveries_app (app_id, id),
        KEY app_deliveries_old (has_content, created_at, id),
        KEY app_deliveries_space (space_id)
      )`,
      // What senders sign with, sealed. The old one holds until its time.
      `CREATE TABLE IF NOT EXISTS app_webhook_secrets (
        app_id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        secret MEDIUMBLOB NOT NULL,
        old_secret MEDIUMBLOB NULL,
        old_secret_until DATETIME(3) NULL,
        KEY app_webhook_secrets_space (space_id)
      )`,
      // The schedule components of the manifests. `next_at` is the next tick, `due_at` when its run begins, with the
      // jitter of this schedule; both are NULL where it is paused. `version` tells a schedule in Temporal that is behind
      // from one that is not.
      `CREATE TABLE IF NOT EXISTS app_schedules (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        app_id VARCHAR(40) NOT NULL,
        item_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        component VARCHAR(63) NOT NULL,
        cron VARCHAR(200) NOT NULL,
        time_zone VARCHAR(100) NOT NULL,
        jitter_seconds INT UNSIGNED NOT NULL,
        enabled TINYINT UNSIGNED NOT NULL,
        pause_code VARCHAR(80) NULL,
        pause_detail VARCHAR(500) NULL,
        paused_at DATETIME(3) NULL,
        failures INT UNSIGNED NOT NULL,
        next_at DATETIME(3) NULL,
        due_at DATETIME(3) NULL,
        last_at DATETIME(3) NULL,
        last_code VARCHAR(80) NULL,
        last_run_id VARCHAR(40) NULL,
        version INT UNSIGNED NOT NULL,
        created_at DATETIME(3) NOT NULL,
        UNIQUE KEY app_schedules_component (app_id, component),
        KEY app_schedules_due (due_at, id),
        KEY app_schedules_space (space_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
    // Of whoever has made the app: what runs without somebody asking for it has their rights. And the delivery that a
    // run is given.
    const columns = [
      ['apps', 'api_key_id', 'VARCHAR(40) NULL'],
      ['apps', 'scopes', 'TEXT NULL'],
      ['app_runs', 'delivery_id', 'VARCHAR(40) NULL'],
    ];
    for (const [table, column, type] of columns) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM ${table} LIKE '${column}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`);
    }
  },
};
