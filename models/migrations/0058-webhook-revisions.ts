import type { Migration } from './migrate.ts';

/** How often an endpoint was given another address, or enabled: what came of an attempt before says nothing of it since. */
export const webhookRevisions: Migration = {
  name: '0058-webhook-revisions',
  async up({ sequelize }) {
    const [present] = await sequelize.query("SHOW COLUMNS FROM webhook_endpoints LIKE 'revision'");
    if (present.length > 0) return;
    await sequelize.query('ALTER TABLE webhook_endpoints ADD COLUMN revision INT UNSIGNED NOT NULL DEFAULT 0');
  },
};
