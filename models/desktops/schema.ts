import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Desktop sessions of computers, links to them and recordings. */
const initial = initialTables('desktops', [
  // A session belongs to one start of its computer: its generation.
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
    controller VARCHAR(80) NULL, -- who may type in it, until controller_until
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
  // Links by which people see a desktop.
  `CREATE TABLE IF NOT EXISTS desktop_links (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    control TINYINT(1) NOT NULL, -- 1 if they may type
    ttl_seconds INT UNSIGNED NOT NULL,
    created_by VARCHAR(40) NOT NULL,
    api_key_id VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NULL, -- NULL: it ends with the session
    revoked_at DATETIME(3) NULL,
    KEY desktop_links_session (session_id, id),
    KEY desktop_links_space (space_id)
  )`,
  // Recordings of desktops, until they are on the drive.
  `CREATE TABLE IF NOT EXISTS desktop_recordings (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    computer_id VARCHAR(40) NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    running_on VARCHAR(40) NULL, -- the session while it may be recorded; one recording at a time
    status ENUM('starting','recording','stopping','saving','saved','failed','discarding','discarded') NOT NULL,
    status_at DATETIME(3) NOT NULL,
    name VARCHAR(255) NOT NULL,
    folder_id VARCHAR(40) NULL, -- where it goes on the drive
    folder_path TEXT NULL,
    display INT UNSIGNED NOT NULL,
    width INT UNSIGNED NOT NULL,
    height INT UNSIGNED NOT NULL,
    frames_per_second INT UNSIGNED NOT NULL,
    max_seconds INT UNSIGNED NOT NULL,
    max_bytes BIGINT UNSIGNED NOT NULL,
    has_file TINYINT(1) NOT NULL, -- 1 if its computer may have the file
    end_code VARCHAR(80) NULL,
    error_code VARCHAR(80) NULL,
    item_id VARCHAR(40) NULL,
    size BIGINT UNSIGNED NULL,
    duration_ms BIGINT UNSIGNED NULL,
    created_by VARCHAR(40) NOT NULL,
    asked_by VARCHAR(40) NOT NULL, -- on whose behalf it goes to the drive
    api_key_id VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    settled_at DATETIME(3) NULL, -- NULL while something is still to be done for it
    UNIQUE KEY desktop_recordings_running (running_on),
    KEY desktop_recordings_session (session_id, id),
    KEY desktop_recordings_sweep (settled_at, status_at),
    KEY desktop_recordings_space (space_id)
  )`,
]);

export const desktopsSchema: AreaSchema = {
  initial,
  ofSpace: ['desktop_recordings', 'desktop_links', 'desktop_sessions'],
};
