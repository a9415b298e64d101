import type { Migration } from './migrate.ts';

/** How far each purge has come that goes through a table from its beginning. */
export const retention: Migration = {
  name: '0019-retention',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS purge_positions (
        name VARCHAR(60) NOT NULL PRIMARY KEY,
        position VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
      )`,
    );
  },
};
