import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Push notifications. */
const initial = initialTables('push', [
  // Devices that get push notifications.
  `CREATE TABLE IF NOT EXISTS push_subscriptions (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    user_id VARCHAR(40) NOT NULL,
    session_id VARCHAR(40) NULL, -- the sign-in that it ends with
    endpoint_hash BINARY(32) NOT NULL,
    service VARCHAR(255) NOT NULL,
    device_name VARCHAR(200) NULL,
    sealed BLOB NOT NULL, -- its address at the push service, and its keys
    created_at DATETIME(3) NOT NULL,
    last_pushed_at DATETIME(3) NULL,
    UNIQUE KEY push_subscriptions_endpoint (endpoint_hash),
    KEY push_subscriptions_user (user_id, created_at),
    KEY push_subscriptions_session (session_id)
  )`,
  // One row: the key pair by which push services know this installation.
  `CREATE TABLE IF NOT EXISTS push_keys (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    public_key VARCHAR(200) NOT NULL,
    private_key_sealed BLOB NOT NULL,
    created_at DATETIME(3) NOT NULL
  )`,
  // How far any device has read a turn. What was seen needs no push.
  `CREATE TABLE IF NOT EXISTS turn_receipts (
    turn_id VARCHAR(40) NOT NULL PRIMARY KEY,
    seq INT UNSIGNED NOT NULL
  )`,
]);

export const pushSchema: AreaSchema = {
  initial,
  ofTurn: ['turn_receipts'],
  kept: {
    push_subscriptions: 'They are devices of people, for all of their spaces.',
    push_keys: 'They are the installation’s.',
  },
};
