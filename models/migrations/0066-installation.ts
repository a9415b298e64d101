import { randomBytes } from 'node:crypto';
import type { Migration } from './migrate.ts';

/**
 * What tells this installation from a restored copy of it: one row. `quiet_since` is set while it does nothing by itself
 * that reaches others.
 */
export const installation: Migration = {
  name: '0066-installation',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS installation (
        one INT UNSIGNED NOT NULL PRIMARY KEY,
        identity VARCHAR(40) NOT NULL,
        restored_from VARCHAR(40) NULL,
        quiet_since DATETIME(3) NULL
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
    );
    await sequelize.query('INSERT IGNORE INTO installation (one, identity) VALUES (1, ?)', {
      replacements: [`ins_${randomBytes(10).toString('hex')}`],
    });
  },
};
