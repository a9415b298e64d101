import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Desktop sessions of computers, and the links by which people look at them. */
export const desktops: Migration = {
  name: '0039-desktops',
  async up({ sequelize }) {
    const tables = [
      // A session belongs to one start of its computer, its `generation`. `controller` is whoever may type in it, until
      // `controller_until`.
      `CREATE TABLE IF NOT EXISTS desktop_sessions (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        computer_id VARCHAR(40) NOT NULL,
        generation INT UNSIGNED NOT NULL,
        display INT UNSIGNED NOT NULL,
        width INT UNSIGNED NOT NULL,
        height INT UNSIGNED NOT NULL,
        status ENUM('starting','running','ending','ended') NOT NULL,
        status_at DATETIME(3) NOT NULL,
        end_code VARCHAR(80) NULL,
        controller VARCHAR(80) NULL,
        controller_until DATETIME(3) NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        KEY desktop_sessions_computer (computer_id, id),
        KEY desktop_sessions_open (computer_id, status),
        KEY desktop_sessions_sweep (status, status_at),
        KEY desktop_sessions_old (ended_at),
        KEY desktop_sessions_space (space_id)
      )`,
      // Without `expires_at`, it is the session's own.
      `CREATE TABLE IF NOT EXISTS desktop_links (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        session_id VARCHAR(40) NOT NULL,
        control TINYINT(1) NOT NULL,
        ttl_seconds INT UNSIGNED NOT NULL,
        created_by VARCHAR(40) NOT NULL,
        api_key_id VARCHAR(40) NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NULL,
        revoked_at DATETIME(3) NULL,
        KEY desktop_links_session (session_id, id),
        KEY desktop_links_space (space_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
