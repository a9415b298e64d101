import type { Migration } from './migrate.ts';

/** Which wish for a compaction it was that is done, what is wrong with a backup in words, and how full a database is. */
export const databaseGuards: Migration = {
  name: '0046-database-guards',
  async up({ sequelize }) {
    // The version of the database that wished it; 0 for none.
    await sequelize.query('ALTER TABLE space_databases MODIFY COLUMN compacts INT UNSIGNED NOT NULL DEFAULT 0');
    const [present] = await sequelize.query("SHOW COLUMNS FROM space_database_backups LIKE 'error_detail'");
    if (present.length > 0) return;
    await sequelize.query('ALTER TABLE space_database_backups ADD COLUMN error_detail VARCHAR(500) NULL');
  },
};
