import type { Migration } from './migrate.ts';

/** What endpoints are told, once for each event. */
export const webhookDeliveries: Migration = {
  name: '0056-webhook-deliveries',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS webhook_deliveries (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        endpoint_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        event_id VARCHAR(120) NOT NULL,
        type VARCHAR(40) NOT NULL,
        body VARCHAR(2000) NOT NULL,
        status ENUM('pending','delivered','failed') NOT NULL,
        pending TINYINT NULL,
        attempts INT NOT NULL,
        last_answer SMALLINT UNSIGNED NULL,
        last_error VARCHAR(80) NULL,
        next_attempt_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        UNIQUE KEY webhook_deliveries_once (endpoint_id, event_id),
        KEY webhook_deliveries_endpoint (endpoint_id, id),
        KEY webhook_deliveries_space (space_id),
        KEY webhook_deliveries_pending (pending, next_attempt_at, id),
        KEY webhook_deliveries_old (created_at, id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
    );
  },
};
