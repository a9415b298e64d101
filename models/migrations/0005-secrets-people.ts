import type { Migration } from './migrate.ts';

// Ids, names and hashes are compared byte by byte, whatever the database's own default is.
const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Secrets, the audit log, invitations, and sign-in by OpenID Connect and by e-mail. */
export const secretsAndPeople: Migration = {
  name: '0005-secrets-people',
  async up({ sequelize }) {
    const tables = [
      // `sealed` is bound to space and name; `size` is that of the value in clear, for the space's limit.
      `CREATE TABLE IF NOT EXISTS secrets (
        space_id VARCHAR(40) NOT NULL,
        name VARCHAR(128) NOT NULL,
        sealed MEDIUMBLOB NOT NULL,
        size INT UNSIGNED NOT NULL,
        revision INT UNSIGNED NOT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        updated_by VARCHAR(40) NOT NULL,
        PRIMARY KEY (space_id, name)
      )`,
      `CREATE TABLE IF NOT EXISTS dynamic_secrets (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        name VARCHAR(200) NOT NULL,
        field VARCHAR(200) NOT NULL,
        sealed MEDIUMBLOB NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        KEY dynamic_secrets_space (space_id, expires_at),
        KEY dynamic_secrets_expires (expires_at)
      )`,
      // Rows are only ever added; the number is their order. A user_id of NULL is the operator, at the command line.
      `CREATE TABLE IF NOT EXISTS audit_entries (
        number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NULL,
        credential_id VARCHAR(40) NULL,
        action VARCHAR(60) NOT NULL,
        target VARCHAR(255) NULL,
        address VARCHAR(64) NULL,
        at DATETIME(3) NOT NULL,
        UNIQUE KEY audit_entries_id (id),
        KEY audit_entries_space (space_id, number)
      )`,
      `CREATE TABLE IF NOT EXISTS invitations (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        token_hash BINARY(32) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        email VARCHAR(254) NOT NULL,
        role ENUM('owner','editor','viewer') NOT NULL,
        was_mailed TINYINT UNSIGNED NOT NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        accepted_at DATETIME(3) NULL,
        accepted_by VARCHAR(40) NULL,
        UNIQUE KEY invitations_token (token_hash),
        KEY invitations_space (space_id),
        KEY invitations_email (email),
        KEY invitations_expires (expires_at)
      )`,
      // A sign-in that is under way: until the issuer sends the browser back, or until the mailed link is followed.
      `CREATE TABLE IF NOT EXISTS sign_ins (
        hash BINARY(32) NOT NULL PRIMARY KEY,
        kind ENUM('oidc','email') NOT NULL,
        sealed BLOB NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        KEY sign_ins_expires (expires_at)
      )`,
      // Whom an issuer means by a subject: kept from the first sign-in, so that a changed e-mail address changes no
      // account.
      `CREATE TABLE IF NOT EXISTS user_identities (
        issuer VARCHAR(255) NOT NULL,
        subject VARCHAR(255) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (issuer, subject),
        KEY user_identities_user (user_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
