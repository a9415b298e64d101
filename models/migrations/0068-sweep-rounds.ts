import type { Migration } from '../migrate.ts';

/** When each sweep last came through, and where it goes on if it has used up its time. */
export const sweepRounds: Migration = {
  name: '0068-sweep-rounds',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS sweep_rounds (
        name VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
        first_at DATETIME(3) NOT NULL,
        through_at DATETIME(3) NULL,
        positions TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
      )`,
    );
  },
};
