import type { Migration } from './migrate.ts';

const indexes = [
  // What belongs to a space that is deleted.
  { table: 'operations', name: 'operations_space', columns: 'space_id, status' },
  { table: 'users', name: 'users_default_space', columns: 'default_space_id' },
  // What the sweeper looks for: devices of sessions that were revoked, keys that are over, balances that were low.
  { table: 'sessions', name: 'sessions_revoked', columns: 'revoked_at' },
  { table: 'push_subscriptions', name: 'push_subscriptions_session', columns: 'session_id' },
  { table: 'api_keys', name: 'api_keys_revoked', columns: 'revoked_at' },
  { table: 'api_keys', name: 'api_keys_expires', columns: 'expires_at' },
  { table: 'billing_balances', name: 'billing_balances_low', columns: 'low_since' },
];

/** Indexes for statements that read whole tables. Writers go on while they are made. */
export const sweepIndexes: Migration = {
  name: '0025-sweep-indexes',
  async up({ sequelize }) {
    for (const { table, name, columns } of indexes) {
      const [present] = await sequelize.query(`SHOW INDEX FROM ${table} WHERE Key_name = '${name}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD INDEX ${name} (${columns})`);
    }
  },
};
