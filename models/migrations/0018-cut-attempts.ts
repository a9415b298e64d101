import type { Migration } from './migrate.ts';

/** How often a step's attempts were cut off by the end of their process, to bound them. A change of metadata only. */
export const cutAttempts: Migration = {
  name: '0018-cut-attempts',
  async up({ sequelize }) {
    const [columns] = await sequelize.query("SHOW COLUMNS FROM model_calls LIKE 'cuts'");
    if (columns.length > 0) return;
    await sequelize.query(
      `ALTER TABLE model_calls
        ADD COLUMN cuts INT UNSIGNED NOT NULL DEFAULT 0,
        ADD COLUMN failed_attempt INT UNSIGNED NOT NULL DEFAULT 0, ALGORITHM=INSTANT`,
    );
  },
};
