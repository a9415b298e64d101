import type { Migration } from './migrate.ts';

/** Who asked for the address that let a browser in: it stays in no longer than they may. Older visits have nobody. */
export const portLinkAskers: Migration = {
  name: '0027-port-link-askers',
  async up({ sequelize }) {
    for (const column of ['asked_by', 'api_key_id', 'session_id']) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM port_link_visits LIKE '${column}'`);
      if (present.length > 0) continue;
      await sequelize.query(`ALTER TABLE port_link_visits ADD COLUMN ${column} VARCHAR(40) NULL`);
    }
  },
};
