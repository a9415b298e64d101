import type { AreaSchema } from './database/areaSchema.ts';
import { deleteInBatches } from './database/batches.ts';
import { initialTables } from './migrations/migration.ts';

/** The tables of no area: operations, the audit log, mail, sweeps, and the installation itself. */
const initial = initialTables(
  'shared',
  [
    // One row per operation that takes more than one step. A client asks for its state here.
    `CREATE TABLE IF NOT EXISTS operations (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      kind VARCHAR(60) NOT NULL,
      space_id VARCHAR(40) NULL,
      user_id VARCHAR(40) NOT NULL,
      subject_id VARCHAR(40) NOT NULL, -- the object that the operation works on
      status ENUM('running','succeeded','failed','cancelled') NOT NULL,
      result TEXT NULL, -- JSON
      error_code VARCHAR(80) NULL,
      error_detail VARCHAR(500) NULL,
      cancel_requested_at DATETIME(3) NULL, -- when a client asked to cancel it
      created_at DATETIME(3) NOT NULL,
      ended_at DATETIME(3) NULL,
      KEY operations_sweep (status, created_at),
      KEY operations_subject (subject_id),
      KEY operations_kind_sweep (status, kind, created_at),
      KEY operations_space (space_id, status)
    )`,
    // One row per Idempotency-Key of a caller. A repeated request gets the first answer again.
    `CREATE TABLE IF NOT EXISTS idempotency_keys (
      caller VARCHAR(40) NOT NULL, -- id of the user
      operation VARCHAR(80) NOT NULL, -- operationId of the API contract
      idempotency_key VARCHAR(200) NOT NULL,
      request_hash BINARY(32) NOT NULL,
      object_id VARCHAR(40) NOT NULL, -- the object that the request made
      response_status SMALLINT UNSIGNED NULL, -- NULL until the request has its answer
      response_body MEDIUMTEXT NULL, -- JSON
      claimed_at DATETIME(3) NOT NULL, -- since when a process has worked on the request
      created_at DATETIME(3) NOT NULL,
      PRIMARY KEY (caller, operation, idempotency_key),
      KEY idempotency_keys_created (created_at)
    )`,
    // The audit log. Rows are only added; number is their order.
    `CREATE TABLE IF NOT EXISTS audit_entries (
      number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
      id VARCHAR(40) NOT NULL,
      space_id VARCHAR(40) NOT NULL,
      user_id VARCHAR(40) NULL, -- NULL for the operator at the command line
      credential_id VARCHAR(40) NULL, -- the session or API key
      action VARCHAR(60) NOT NULL,
      target VARCHAR(255) NULL,
      address VARCHAR(64) NULL, -- IP address of the caller
      at DATETIME(3) NOT NULL,
      UNIQUE KEY audit_entries_id (id),
      KEY audit_entries_space (space_id, number)
    )`,
    // Mails to be sent. They contain sign-in links, so they are sealed, and deleted once sent.
    `CREATE TABLE IF NOT EXISTS mails (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      sealed MEDIUMBLOB NOT NULL,
      created_at DATETIME(3) NOT NULL,
      expires_at DATETIME(3) NOT NULL,
      KEY mails_created (created_at),
      KEY mails_expires (expires_at)
    )`,
    // When each sweep last completed a round, and where it continues if it ran out of time.
    `CREATE TABLE IF NOT EXISTS sweep_rounds (
      name VARCHAR(60) NOT NULL PRIMARY KEY,
      first_at DATETIME(3) NOT NULL,
      through_at DATETIME(3) NULL, -- end of its last complete round
      positions TEXT NULL -- JSON: where an unfinished round goes on
    )`,
    // How far each purge that goes through a whole table has come.
    `CREATE TABLE IF NOT EXISTS purge_positions (
      name VARCHAR(60) NOT NULL PRIMARY KEY,
      position VARCHAR(60) NOT NULL
    )`,
    // One row, which tells this installation from a restored copy of it.
    `CREATE TABLE IF NOT EXISTS installation (
      one INT UNSIGNED NOT NULL PRIMARY KEY, -- always 1
      identity VARCHAR(40) NOT NULL,
      restored_from VARCHAR(40) NULL, -- the backup, in a restored installation
      quiet_since DATETIME(3) NULL -- set while it does nothing by itself that others would notice
    )`,
    // Versions of the program that have migrated this database. An older program names the newest of them.
    `CREATE TABLE IF NOT EXISTS program_versions (
      version VARCHAR(60) NOT NULL PRIMARY KEY,
      migrated_at DATETIME(3) NOT NULL
    )`,
  ],
  ["INSERT IGNORE INTO installation (one, identity) VALUES (1, CONCAT('ins_', LOWER(HEX(RANDOM_BYTES(10)))))"],
);

export const sharedSchema: AreaSchema = {
  initial,
  ofSpace: ['audit_entries'],
  kept: {
    operations:
      'The deletion is one, and tells that it has ended. What is still running has to end too; the rest goes.',
    idempotency_keys: 'They are a caller’s, and go after their 30 days.',
    schema_migrations: 'It is the schema’s.',
    program_versions: 'They are the schema’s.',
    sweep_rounds: 'They are the installation’s.',
    purge_positions: 'They are the installation’s.',
    installation: 'It is the installation’s own.',
  },
  async finish(database, spaceId) {
    await deleteInBatches(
      database,
      "DELETE FROM operations WHERE space_id = ? AND kind <> 'deleteSpace' AND status <> 'running' LIMIT ?",
      [spaceId],
    );
  },
};
