import type { Migration } from '../migrate.ts';

/** The versions of the program that have brought the schema up to date, so that an older one can name them. */
export const programVersions: Migration = {
  name: '0069-program-versions',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS program_versions (
        version VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
        migrated_at DATETIME(3) NOT NULL
      )`,
    );
  },
};
