import type { Migration } from './migrate.ts';

/** Why the page has not come that a browser session was to open first. */
export const browserFirstPage: Migration = {
  name: '0050-browser-first-page',
  async up({ sequelize }) {
    for (const [column, type] of [
      ['url_code', 'VARCHAR(80)'],
      ['url_detail', 'VARCHAR(500)'],
    ]) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM browser_sessions LIKE '${column}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE browser_sessions ADD COLUMN ${column} ${type} NULL`);
    }
  },
};
