import type { Migration } from './migrate.ts';

/** A checkout ends as mispaid when another amount was paid than was asked for. */
export const mispaidCheckouts: Migration = {
  name: '0012-mispaid-checkouts',
  async up({ sequelize }) {
    await sequelize.query(
      `ALTER TABLE billing_checkouts MODIFY COLUMN status
        ENUM('creating','open','processing','paid','failed','expired','cancelled','mispaid') NOT NULL`,
    );
  },
};
