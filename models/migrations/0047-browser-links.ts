import type { Migration } from './migrate.ts';

/** Links by which scripts attach to browsers. */
export const browserLinks: Migration = {
  name: '0047-browser-links',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS browser_links (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        session_id VARCHAR(40) NOT NULL,
        token_hash BINARY(32) NULL,
        created_by VARCHAR(40) NOT NULL,
        api_key_id VARCHAR(40) NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        UNIQUE KEY browser_links_token (token_hash),
        KEY browser_links_session (session_id, id),
        KEY browser_links_space (space_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
    );
  },
};
