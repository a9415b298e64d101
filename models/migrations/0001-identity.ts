import type { Migration } from './migrate.ts';

// Ids and hashes are compared byte by byte, whatever the database's own default is.
const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Users, spaces, members; sessions, API keys, one-time codes; data keys and the session signing keys. */
export const identity: Migration = {
  name: '0001-identity',
  async up({ sequelize }) {
    const tables = [
      `CREATE TABLE IF NOT EXISTS users (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        email VARCHAR(254) NOT NULL,
        name VARCHAR(200) NOT NULL,
        default_space_id VARCHAR(40) NULL,
        created_at DATETIME(3) NOT NULL,
        disabled_at DATETIME(3) NULL,
        UNIQUE KEY users_email (email)
      )`,
      `CREATE TABLE IF NOT EXISTS spaces (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        name VARCHAR(200) NOT NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        deleted_at DATETIME(3) NULL
      )`,
      `CREATE TABLE IF NOT EXISTS space_members (
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        role ENUM('owner','editor','viewer') NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (space_id, user_id),
        KEY space_members_user (user_id, space_id)
      )`,
      `CREATE TABLE IF NOT EXISTS sessions (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        user_id VARCHAR(40) NOT NULL,
        label VARCHAR(200) NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        revoked_at DATETIME(3) NULL,
        KEY sessions_user (user_id, id),
        KEY sessions_expires (expires_at)
      )`,
      // parent_key_id: the key that made this one. Revoking a key revokes what was made with it.
      `CREATE TABLE IF NOT EXISTS api_keys (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        user_id VARCHAR(40) NOT NULL,
        parent_key_id VARCHAR(40) NULL,
        name VARCHAR(200) NOT NULL,
        hash BINARY(32) NOT NULL,
        hint VARCHAR(12) NOT NULL,
        scopes TEXT NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NULL,
        revoked_at DATETIME(3) NULL,
        last_used_at DATETIME(3) NULL,
        UNIQUE KEY api_keys_hash (hash),
        KEY api_keys_user (user_id, id),
        KEY api_keys_parent (parent_key_id)
      )`,
      `CREATE TABLE IF NOT EXISTS auth_codes (
        hash BINARY(32) NOT NULL PRIMARY KEY,
        user_id VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        used_at DATETIME(3) NULL,
        KEY auth_codes_expires (expires_at)
      )`,
      `CREATE TABLE IF NOT EXISTS data_keys (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        scope VARCHAR(40) NOT NULL,
        version INT UNSIGNED NOT NULL,
        master_key_id VARCHAR(255) NOT NULL,
        wrapped_key VARBINARY(1024) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        UNIQUE KEY data_keys_scope_version (scope, version)
      )`,
      `CREATE TABLE IF NOT EXISTS signing_keys (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        algorithm VARCHAR(16) NOT NULL,
        public_jwk TEXT NOT NULL,
        private_jwk_sealed BLOB NOT NULL,
        created_at DATETIME(3) NOT NULL,
        retired_at DATETIME(3) NULL
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
