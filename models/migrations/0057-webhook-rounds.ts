import type { Migration } from './migrate.ts';

/** What an endpoint is told next, until when it is left alone, and which request has asked for a replay. */
export const webhookRounds: Migration = {
  name: '0057-webhook-rounds',
  async up({ sequelize }) {
    for (const [table, column, type] of [
      ['webhook_endpoints', 'paused_until', 'DATETIME(3)'],
      ['webhook_deliveries', 'replay_id', 'VARCHAR(40)'],
    ]) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM ${table} LIKE '${column}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD COLUMN ${column} ${type} NULL`);
    }
    const [indexes] = await sequelize.query('SHOW INDEX FROM webhook_deliveries');
    const names = new Set((indexes as { Key_name: string }[]).map((index) => index.Key_name));
    if (!names.has('webhook_deliveries_due')) {
      const due = 'webhook_deliveries_due (pending, endpoint_id, next_attempt_at, id)';
      await sequelize.query(`ALTER TABLE webhook_deliveries ADD KEY ${due}`);
    }
    if (names.has('webhook_deliveries_pending')) {
      await sequelize.query('ALTER TABLE webhook_deliveries DROP KEY webhook_deliveries_pending');
    }
  },
};
