import type { AreaSchema } from '../database/areaSchema.ts';
import { deleteInBatches } from '../database/batches.ts';
import { initialTables } from '../migrations/migration.ts';

/** Databases of spaces, their accounts and backups. */
const initial = initialTables('databases', [
  // Databases of spaces on the tenant server.
  `CREATE TABLE IF NOT EXISTS space_databases (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    name VARCHAR(100) NOT NULL,
    live_name VARCHAR(300) NULL, -- normalized name; NULL once it is deleted, so that the name is free
    server_name VARCHAR(32) NOT NULL, -- its name on the server
    state ENUM('living','deleted','purged') NOT NULL,
    is_made TINYINT(1) NOT NULL DEFAULT 0, -- 1 once the server has it
    size_bytes BIGINT UNSIGNED NOT NULL DEFAULT 0,
    table_count INT UNSIGNED NOT NULL DEFAULT 0,
    is_full TINYINT UNSIGNED NOT NULL DEFAULT 0, -- 1 takes the right to write
    compacts INT UNSIGNED NOT NULL DEFAULT 0, -- version that asked for a compaction; 0 for none
    version INT UNSIGNED NOT NULL DEFAULT 1, -- counts what was wished of it
    due_at DATETIME(3) NULL, -- from then on the server may differ from this row
    restores VARCHAR(40) NULL, -- the backup that it is made from
    backup_at DATETIME(3) NULL, -- when its next backup begins
    left_out TEXT NULL, -- JSON: what its backup did not contain
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    deleted_at DATETIME(3) NULL,
    purge_at DATETIME(3) NULL,
    UNIQUE KEY space_databases_name (space_id, live_name),
    UNIQUE KEY space_databases_server (server_name),
    KEY space_databases_space (space_id, id),
    KEY space_databases_due (due_at),
    KEY space_databases_state (state, id),
    KEY space_databases_backup (backup_at, id),
    KEY space_databases_restores (restores)
  )`,
  // Accounts on the tenant server. The account of the space itself has no app_id.
  `CREATE TABLE IF NOT EXISTS space_database_accounts (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    database_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    app_id VARCHAR(40) NULL,
    item_id VARCHAR(40) NULL,
    purpose VARCHAR(10) NULL, -- set for accounts of Atrium itself
    server_user VARCHAR(32) NOT NULL, -- its name on the server
    sealed MEDIUMBLOB NOT NULL, -- password
    previous_sealed MEDIUMBLOB NULL, -- password that works until previous_until
    previous_until DATETIME(3) NULL,
    password_version INT UNSIGNED NOT NULL DEFAULT 1,
    set_version INT UNSIGNED NOT NULL DEFAULT 0, -- version of the password that the server is known to have
    is_cut TINYINT UNSIGNED NOT NULL DEFAULT 0, -- 1 until its connections were ended once
    revoked_at DATETIME(3) NULL,
    UNIQUE KEY space_database_accounts_user (server_user),
    UNIQUE KEY space_database_accounts_app (app_id, database_id),
    UNIQUE KEY space_database_accounts_purpose (database_id, purpose),
    KEY space_database_accounts_database (database_id, id),
    KEY space_database_accounts_space (space_id)
  )`,
  `CREATE TABLE IF NOT EXISTS space_database_backups (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    database_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    state ENUM('making','kept','failed') NOT NULL,
    object_key VARCHAR(64) NULL, -- object of the drive
    size_bytes BIGINT UNSIGNED NULL,
    left_out TEXT NULL, -- JSON: what it does not contain
    error_code VARCHAR(80) NULL,
    error_detail VARCHAR(500) NULL,
    due_at DATETIME(3) NULL, -- set while it is being made
    created_by VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    KEY space_database_backups_database (database_id, id),
    KEY space_database_backups_space (space_id),
    KEY space_database_backups_due (due_at, id)
  )`,
]);

/** After `purgeDatabasesOf` (purge.ts): then the server has none of them any more, where there is one. */
export const databasesSchema: AreaSchema = {
  initial,
  own: ['space_database_accounts', 'space_database_backups', 'space_databases'],
  async finish(database, spaceId) {
    // Their objects go with those of the space.
    await deleteInBatches(database, 'DELETE FROM space_database_backups WHERE space_id = ? LIMIT ?', [spaceId]);
    // What a server has that is not configured now stays known: it is removed when there is one again.
    await deleteInBatches(
      database,
      'DELETE FROM space_databases WHERE space_id = ? AND (due_at IS NULL OR is_made = 0) LIMIT ?',
      [spaceId],
    );
    await deleteInBatches(
      database,
      `DELETE FROM space_database_accounts
        WHERE space_id = ? AND database_id NOT IN (SELECT id FROM space_databases WHERE space_id = ?) LIMIT ?`,
      [spaceId, spaceId],
    );
  },
};
