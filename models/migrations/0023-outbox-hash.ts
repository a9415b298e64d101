import type { Migration } from './migrate.ts';

/** Keeps a hash of what a message with an outbox id said, so that the id cannot be reused. Null for older turns. */
export const outboxHash: Migration = {
  name: '0023-outbox-hash',
  async up({ sequelize }) {
    const [columns] = await sequelize.query("SHOW COLUMNS FROM turns LIKE 'outbox_hash'");
    if (columns.length > 0) return;
    await sequelize.query('ALTER TABLE turns ADD COLUMN outbox_hash BINARY(32) NULL AFTER outbox_item_id');
  },
};
