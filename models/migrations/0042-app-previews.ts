import type { Migration } from './migrate.ts';

/** Links to what the web components of apps serve: each belongs to the run that serves it. */
export const appPreviews: Migration = {
  name: '0042-app-previews',
  async up({ sequelize }) {
    const [present] = await sequelize.query(`SHOW COLUMNS FROM port_links LIKE 'run_id'`);
    if (present.length > 0) return;
    await sequelize.query('ALTER TABLE port_links ADD COLUMN run_id VARCHAR(40) NULL, ADD KEY port_links_run (run_id)');
  },
};
