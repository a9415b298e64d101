import type { Migration } from './migrate.ts';

/**
 * Until when a call belongs to the process that has accepted its message, unless that says otherwise, and what that
 * process has left to whoever takes the step over.
 */
export const modelCallHolds: Migration = {
  name: '0054-model-call-holds',
  async up({ sequelize }) {
    const [present] = await sequelize.query("SHOW COLUMNS FROM model_calls LIKE 'held_until'");
    if (present.length > 0) return;
    await sequelize.query(
      'ALTER TABLE model_calls ADD COLUMN held_until DATETIME(3) NULL, ADD COLUMN left_as JSON NULL',
    );
  },
};
