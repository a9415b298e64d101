import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** The databases of spaces, and the accounts that get into them. */
export const databases: Migration = {
  name: '0036-databases',
  async up({ sequelize }) {
    const tables = [
      // `server_name` is what it is called on the server. `version` counts what was wished of it; `due_at` says from
      // when on the server may have it otherwise than its row.
      `CREATE TABLE IF NOT EXISTS space_databases (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        name VARCHAR(100) NOT NULL,
        live_name VARCHAR(100) NULL,
        server_name VARCHAR(32) NOT NULL,
        state ENUM('living','deleted','purged') NOT NULL,
        is_made TINYINT(1) NOT NULL DEFAULT 0,
        version INT UNSIGNED NOT NULL DEFAULT 1,
        due_at DATETIME(3) NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        deleted_at DATETIME(3) NULL,
        purge_at DATETIME(3) NULL,
        UNIQUE KEY space_databases_name (space_id, live_name),
        UNIQUE KEY space_databases_server (server_name),
        KEY space_databases_space (space_id, id),
        KEY space_databases_due (due_at),
        KEY space_databases_state (state, id)
      )`,
      // The space's own account has no app. `set_version` is the password's that the server is known to have.
      `CREATE TABLE IF NOT EXISTS space_database_accounts (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        database_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        app_id VARCHAR(40) NULL,
        item_id VARCHAR(40) NULL,
        server_user VARCHAR(32) NOT NULL,
        sealed MEDIUMBLOB NOT NULL,
        previous_sealed MEDIUMBLOB NULL,
        previous_until DATETIME(3) NULL,
        password_version INT UNSIGNED NOT NULL DEFAULT 1,
        set_version INT UNSIGNED NOT NULL DEFAULT 0,
        revoked_at DATETIME(3) NULL,
        UNIQUE KEY space_database_accounts_user (server_user),
        UNIQUE KEY space_database_accounts_app (app_id, database_id),
        KEY space_database_accounts_database (database_id, id),
        KEY space_database_accounts_space (space_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
