import type { Migration } from './migrate.ts';

/** Where spaces want to be told of what happens. */
export const webhookEndpoints: Migration = {
  name: '0055-webhook-endpoints',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS webhook_endpoints (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        url VARCHAR(2000) NOT NULL,
        events VARCHAR(500) NOT NULL,
        enabled TINYINT NOT NULL,
        disabled_code VARCHAR(80) NULL,
        disabled_at DATETIME(3) NULL,
        failing_since DATETIME(3) NULL,
        secret_id VARCHAR(40) NULL,
        secret VARBINARY(1000) NULL,
        old_secret VARBINARY(1000) NULL,
        old_secret_until DATETIME(3) NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        KEY webhook_endpoints_space (space_id, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
    );
  },
};
