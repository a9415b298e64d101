import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Webhook endpoints of spaces, and what they are told. */
const initial = initialTables('webhooks', [
  // Addresses that a space wants its events sent to.
  `CREATE TABLE IF NOT EXISTS webhook_endpoints (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    url VARCHAR(2000) NOT NULL,
    events VARCHAR(500) NOT NULL, -- comma-separated types of events
    -- counts changes of address and re-enabling; earlier attempts do not count
    revision INT UNSIGNED NOT NULL DEFAULT 0,
    enabled TINYINT NOT NULL,
    disabled_code VARCHAR(80) NULL, -- why it was disabled
    disabled_at DATETIME(3) NULL,
    failing_since DATETIME(3) NULL,
    paused_until DATETIME(3) NULL, -- until then nothing is sent
    secret_id VARCHAR(40) NULL, -- names the present secret
    secret VARBINARY(1000) NULL,
    old_secret VARBINARY(1000) NULL, -- holds until old_secret_until
    old_secret_until DATETIME(3) NULL,
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    KEY webhook_endpoints_space (space_id, id)
  )`,
  // Deliveries to endpoints, one for each event.
  `CREATE TABLE IF NOT EXISTS webhook_deliveries (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    endpoint_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    event_id VARCHAR(120) NOT NULL,
    type VARCHAR(40) NOT NULL,
    body VARCHAR(2000) NOT NULL, -- JSON, as it is sent
    status ENUM('pending','delivered','failed') NOT NULL,
    pending TINYINT NULL, -- 1 while it is pending, then NULL
    attempts INT NOT NULL, -- since it was made or replayed
    replay_id VARCHAR(40) NULL, -- the request that asked for a replay
    last_answer SMALLINT UNSIGNED NULL, -- HTTP status; NULL if there was no answer
    last_error VARCHAR(80) NULL,
    next_attempt_at DATETIME(3) NULL,
    created_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    UNIQUE KEY webhook_deliveries_once (endpoint_id, event_id),
    KEY webhook_deliveries_endpoint (endpoint_id, id),
    KEY webhook_deliveries_space (space_id),
    KEY webhook_deliveries_old (created_at, id),
    KEY webhook_deliveries_due (pending, endpoint_id, next_attempt_at, id)
  )`,
]);

/** Endpoints first: a delivery is only added while its endpoint is there. */
export const webhooksSchema: AreaSchema = {
  initial,
  ofSpace: ['webhook_endpoints', 'webhook_deliveries'],
};
