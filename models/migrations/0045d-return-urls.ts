import type { Migration } from './migrate.ts';

/** Where somebody goes back to who has joined a space, or paid. */
export const returnUrls: Migration = {
  name: '0045d-return-urls',
  async up({ sequelize }) {
    for (const table of ['invitations', 'billing_checkouts']) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM ${table} LIKE 'return_url'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD COLUMN return_url TEXT NULL`);
    }
  },
};
