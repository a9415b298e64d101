import type { AreaSchema } from '../database/areaSchema.ts';
import { execute } from '../database/sql.ts';
import { initialTables } from '../migrations/migration.ts';

const ofPeople = 'It is a person’s, for all of their spaces.';

/** Users, spaces and their members; sign-ins, API keys and invitations; the keys that seal and sign. */
const initial = initialTables('identity', [
  `CREATE TABLE IF NOT EXISTS users (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    email VARCHAR(254) NOT NULL,
    name VARCHAR(200) NOT NULL,
    default_space_id VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    disabled_at DATETIME(3) NULL,
    UNIQUE KEY users_email (email),
    KEY users_default_space (default_space_id)
  )`,
  // Users whose e-mail address is not proven: they joined by a link that was passed on by hand. The first person who
  // proves the address gets the account.
  `CREATE TABLE IF NOT EXISTS unproven_users (
    user_id VARCHAR(40) NOT NULL PRIMARY KEY,
    created_at DATETIME(3) NOT NULL
  )`,
  // The user that an OpenID Connect issuer means by a subject. Later changes of e-mail do not change it.
  `CREATE TABLE IF NOT EXISTS user_identities (
    issuer VARCHAR(255) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    user_id VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    PRIMARY KEY (issuer, subject),
    KEY user_identities_user (user_id)
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
  `CREATE TABLE IF NOT EXISTS invitations (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    token_hash BINARY(32) NOT NULL, -- SHA-256 of the token in the link
    space_id VARCHAR(40) NOT NULL,
    email VARCHAR(254) NOT NULL,
    role ENUM('owner','editor','viewer') NOT NULL,
    was_mailed TINYINT UNSIGNED NOT NULL, -- 0 if the inviter passes the link on by hand
    return_url TEXT NULL, -- where the browser goes after joining
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
  // Sign-ins. Each is one device or browser.
  `CREATE TABLE IF NOT EXISTS sessions (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    user_id VARCHAR(40) NOT NULL,
    label VARCHAR(200) NULL, -- the client's user agent
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    revoked_at DATETIME(3) NULL,
    KEY sessions_user (user_id, id),
    KEY sessions_expires (expires_at),
    KEY sessions_revoked (revoked_at)
  )`,
  `CREATE TABLE IF NOT EXISTS api_keys (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    user_id VARCHAR(40) NOT NULL,
    parent_key_id VARCHAR(40) NULL, -- the key that made this one; revoking a key revokes its children
    name VARCHAR(200) NOT NULL,
    hash BINARY(32) NOT NULL,
    hint VARCHAR(12) NOT NULL, -- its first characters, for people
    scopes TEXT NOT NULL, -- JSON list
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NULL,
    revoked_at DATETIME(3) NULL,
    last_used_at DATETIME(3) NULL,
    UNIQUE KEY api_keys_hash (hash),
    KEY api_keys_user (user_id, id),
    KEY api_keys_parent (parent_key_id),
    KEY api_keys_revoked (revoked_at),
    KEY api_keys_expires (expires_at)
  )`,
  // A sign-in under way: until the issuer sends the browser back, or the user follows the mailed link.
  `CREATE TABLE IF NOT EXISTS sign_ins (
    hash BINARY(32) NOT NULL PRIMARY KEY, -- SHA-256 of the state, or of the token in the mail
    kind ENUM('oidc','email') NOT NULL,
    sealed BLOB NOT NULL, -- what is needed to finish it
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    KEY sign_ins_expires (expires_at)
  )`,
  // One-time codes that a client exchanges for a session.
  `CREATE TABLE IF NOT EXISTS auth_codes (
    hash BINARY(32) NOT NULL PRIMARY KEY, -- SHA-256 of the code
    user_id VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    used_at DATETIME(3) NULL,
    KEY auth_codes_expires (expires_at)
  )`,
  // Keys that seal the secrets of one scope, wrapped by the master key.
  `CREATE TABLE IF NOT EXISTS data_keys (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    scope VARCHAR(40) NOT NULL, -- id of a space, or a name of the installation
    version INT UNSIGNED NOT NULL,
    master_key_id VARCHAR(255) NOT NULL,
    wrapped_key VARBINARY(1024) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY data_keys_scope_version (scope, version)
  )`,
  // Keys that sign session tokens. They are kept while tokens of theirs may be in use.
  `CREATE TABLE IF NOT EXISTS signing_keys (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    algorithm VARCHAR(16) NOT NULL,
    public_jwk TEXT NOT NULL,
    private_jwk_sealed BLOB NOT NULL,
    created_at DATETIME(3) NOT NULL,
    retired_at DATETIME(3) NULL
  )`,
]);

export const identitySchema: AreaSchema = {
  initial,
  ofSpace: ['space_members', 'invitations'],
  own: ['data_keys'],
  kept: {
    spaces: 'The row says that there was such a space, and when it was deleted; its name goes.',
    users: ofPeople,
    user_identities: ofPeople,
    unproven_users: ofPeople,
    sessions: ofPeople,
    api_keys: ofPeople,
    auth_codes: ofPeople,
    sign_ins: ofPeople,
    signing_keys: 'They are the installation’s.',
  },
  /**
   * Destroys the space's keys: what is sealed with them, in a backup or a row that came too late, can be read by nobody
   * any more.
   */
  async finish(database, spaceId) {
    await execute(database.pool, "UPDATE spaces SET name = '' WHERE id = ? AND deleted_at IS NOT NULL", [spaceId]);
    await execute(database.pool, 'DELETE FROM data_keys WHERE scope = ?', [spaceId]);
  },
};
