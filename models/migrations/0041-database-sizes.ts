import type { Migration } from './migrate.ts';

/** How large the databases of spaces are, and what follows from it; connections that are to be ended once. */
export const databaseSizes: Migration = {
  name: '0041-database-sizes',
  async up({ sequelize }) {
    // A name in its normal form can be longer than as it was given.
    await sequelize.query('ALTER TABLE space_databases MODIFY COLUMN live_name VARCHAR(300) NULL');
    // `is_full` takes the right to write. `compacts` and `is_cut` are wishes that are over when they are done once.
    const columns = [
      ['space_databases', 'size_bytes', 'BIGINT UNSIGNED NOT NULL DEFAULT 0'],
      ['space_databases', 'table_count', 'INT UNSIGNED NOT NULL DEFAULT 0'],
      ['space_databases', 'is_full', 'TINYINT UNSIGNED NOT NULL DEFAULT 0'],
      ['space_databases', 'compacts', 'TINYINT UNSIGNED NOT NULL DEFAULT 0'],
      ['space_database_accounts', 'is_cut', 'TINYINT UNSIGNED NOT NULL DEFAULT 0'],
    ];
    for (const [table, column, type] of columns) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM ${table} LIKE '${column}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`);
    }
  },
};
