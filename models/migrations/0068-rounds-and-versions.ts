import type { Migration } from './migrate.ts';

/**
 * When each sweep last came through, and where it goes on if it has used up its time; and the versions of the program
 * that have brought the schema up to date, so that an older one can name them.
 */
export const roundsAndVersions: Migration = {
  name: '0068-rounds-and-versions',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS sweep_rounds (
        name VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
        first_at DATETIME(3) NOT NULL,
        through_at DATETIME(3) NULL,
        positions TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
      )`,
    );
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS program_versions (
        version VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
        migrated_at DATETIME(3) NOT NULL
      )`,
    );
  },
};
