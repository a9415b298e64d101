import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Computers, the hosts that run them, and links to their ports. */
const initial = initialTables('computers', [
  // A limit of NULL is the operator's default.
  `CREATE TABLE IF NOT EXISTS computers (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    default_of VARCHAR(40) NULL, -- the id of its space for the default computer, of which a space has one
    name VARCHAR(200) NOT NULL,
    driver VARCHAR(20) NULL,
    cpu_milli INT UNSIGNED NULL,
    memory_mib INT UNSIGNED NULL,
    disk_mib INT UNSIGNED NULL,
    idle_minutes INT UNSIGNED NULL,
    sealed_env MEDIUMBLOB NULL,
    env_names TEXT NOT NULL,
    status ENUM('created','starting','running','paused','stopping','stopped','error') NOT NULL,
    status_at DATETIME(3) NOT NULL,
    wish ENUM('wake','stop','pause','fork','delete') NULL, -- what is still to be done with it
    error_code VARCHAR(80) NULL,
    error_detail VARCHAR(500) NULL,
    generation INT UNSIGNED NOT NULL, -- counts its starts
    host_id VARCHAR(40) NULL, -- where its home is; NULL before its first start
    forked_from VARCHAR(40) NULL,
    created_by VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    started_at DATETIME(3) NULL,
    alive_at DATETIME(3) NULL, -- when its host last reported it
    active_at DATETIME(3) NULL, -- when something on it was last active
    used_at DATETIME(3) NULL, -- when something was last asked of it
    processes INT UNSIGNED NOT NULL DEFAULT 0,
    ran_ms BIGINT UNSIGNED NOT NULL DEFAULT 0, -- how long this generation ran before started_at
    minutes_charged INT UNSIGNED NOT NULL DEFAULT 0, -- minutes of this generation in the ledger
    deleted_at DATETIME(3) NULL,
    UNIQUE KEY computers_default (default_of),
    KEY computers_space (space_id, id),
    KEY computers_host (host_id, status),
    KEY computers_sweep (status, status_at),
    KEY computers_wish (wish, status_at)
  )`,
  // Machines that run computers.
  `CREATE TABLE IF NOT EXISTS computer_hosts (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    address VARCHAR(255) NULL, -- where other processes reach it; NULL if only its own can
    drivers VARCHAR(100) NOT NULL, -- comma-separated
    cpu_milli INT UNSIGNED NOT NULL,
    memory_mib INT UNSIGNED NOT NULL,
    max_running INT UNSIGNED NOT NULL,
    seen_at DATETIME(3) NOT NULL
  )`,
  // Homes of deleted computers whose host did not answer. The host removes them when it is back.
  `CREATE TABLE IF NOT EXISTS computer_remains (
    computer_id VARCHAR(40) NOT NULL,
    host_id VARCHAR(40) NOT NULL,
    since DATETIME(3) NOT NULL,
    PRIMARY KEY (computer_id, host_id),
    KEY computer_remains_host (host_id)
  )`,
  // Secrets that a computer sees as placeholders. Requests to the listed hosts get the value instead.
  `CREATE TABLE IF NOT EXISTS computer_secrets (
    computer_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    name VARCHAR(128) NOT NULL,
    variable VARCHAR(128) NOT NULL, -- environment variable that holds the placeholder
    placeholder VARCHAR(64) NOT NULL,
    hosts TEXT NOT NULL, -- JSON list
    in_url BOOLEAN NOT NULL, -- 1 if it may be part of a URL
    headers TEXT NULL, -- JSON list of headers that may hold it, beside the usual ones
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    updated_by VARCHAR(40) NOT NULL,
    PRIMARY KEY (computer_id, name),
    UNIQUE KEY computer_secrets_variable (computer_id, variable),
    KEY computer_secrets_space (space_id)
  )`,
  // Links to ports of computers.
  `CREATE TABLE IF NOT EXISTS port_links (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    computer_id VARCHAR(40) NOT NULL,
    port SMALLINT UNSIGNED NOT NULL,
    run_id VARCHAR(40) NULL, -- the run of an app that serves the port; its link ends with it
    label VARCHAR(40) NOT NULL, -- first part of its host name; it opens nothing by itself
    created_by VARCHAR(40) NOT NULL,
    api_key_id VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    revoked_at DATETIME(3) NULL,
    UNIQUE KEY port_links_label (label),
    KEY port_links_computer (computer_id, id),
    KEY port_links_space (space_id),
    KEY port_links_expires (expires_at),
    KEY port_links_run (run_id)
  )`,
  // Browsers that a port link has let in or will let in.
  `CREATE TABLE IF NOT EXISTS port_link_visits (
    token_hash BINARY(32) NOT NULL PRIMARY KEY, -- SHA-256 of the token, which is used once
    cookie_hash BINARY(32) NULL, -- SHA-256 of the cookie that the token is exchanged for
    link_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    asked_by VARCHAR(40) NULL, -- the user whose right to enter it has; it ends with their sign-in or key
    api_key_id VARCHAR(40) NULL,
    session_id VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY port_link_visits_cookie (cookie_hash),
    KEY port_link_visits_link (link_id),
    KEY port_link_visits_space (space_id)
  )`,
]);

/**
 * Emptied before the other rows of a space, since homes go from their hosts too: by `deleteComputersOf` (purge.ts). The
 * objects of saved homes go with those of the drive.
 */
export const computersSchema: AreaSchema = {
  initial,
  ofSpace: [
    'port_link_visits',
    'port_links',
    'computers',
    'computer_secrets',
    'computer_snapshots',
    'home_saves',
    'home_save_pieces',
  ],
  kept: {
    computer_hosts: 'They are the installation’s.',
    computer_remains: 'They name homes that a host still has to remove, and nothing of their space.',
  },
};
