import type { Migration } from './migrate.ts';

/** The sign-in with which a link to a browser was made: the link ends with it. */
export const browserLinkSessions: Migration = {
  name: '0069-browser-link-sessions',
  async up({ sequelize }) {
    const [present] = await sequelize.query("SHOW COLUMNS FROM browser_links LIKE 'login_session_id'");
    if (present.length > 0) return;
    await sequelize.query(
      'ALTER TABLE browser_links ADD COLUMN login_session_id VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL',
    );
  },
};
