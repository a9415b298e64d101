import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Links to ports of computers, and the browsers that they have let in or will. */
export const portLinks: Migration = {
  name: '0026-port-links',
  async up({ sequelize }) {
    const tables = [
      // `label` is the first part of its host name; it opens nothing by itself.
      `CREATE TABLE IF NOT EXISTS port_links (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        computer_id VARCHAR(40) NOT NULL,
        port SMALLINT UNSIGNED NOT NULL,
        label VARCHAR(40) NOT NULL,
        created_by VARCHAR(40) NOT NULL,
        api_key_id VARCHAR(40) NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        revoked_at DATETIME(3) NULL,
        UNIQUE KEY port_links_label (label),
        KEY port_links_computer (computer_id, id),
        KEY port_links_space (space_id),
        KEY port_links_expires (expires_at)
      )`,
      // Hashes of the token that is used up and of the cookie that it is exchanged for.
      `CREATE TABLE IF NOT EXISTS port_link_visits (
        token_hash BINARY(32) NOT NULL PRIMARY KEY,
        cookie_hash BINARY(32) NULL,
        link_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        UNIQUE KEY port_link_visits_cookie (cookie_hash),
        KEY port_link_visits_link (link_id),
        KEY port_link_visits_space (space_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
