import type { Migration } from './migrate.ts';

/** What a backup, or a database that was made from one, does not have: JSON, NULL for nothing. */
export const databaseLeftOut: Migration = {
  name: '0048-database-left-out',
  async up({ sequelize }) {
    for (const table of ['space_database_backups', 'space_databases']) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM ${table} LIKE 'left_out'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD COLUMN left_out TEXT NULL`);
    }
  },
};
