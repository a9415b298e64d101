import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Browser profiles, sessions and links. */
const initial = initialTables('browsers', [
  // Cookies and settings of browsers, kept between sessions.
  `CREATE TABLE IF NOT EXISTS browser_profiles (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    name VARCHAR(200) NOT NULL,
    computer_id VARCHAR(40) NOT NULL,
    opened INT UNSIGNED NOT NULL, -- counts its sessions
    saved INT UNSIGNED NOT NULL, -- number of the session after which it was last saved
    object_key VARCHAR(64) NULL, -- object of the drive
    size_bytes BIGINT UNSIGNED NULL,
    saved_at DATETIME(3) NULL,
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    KEY browser_profiles_space (space_id, id)
  )`,
  // A session belongs to one start of its computer: its generation.
  `CREATE TABLE IF NOT EXISTS browser_sessions (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    profile_id VARCHAR(40) NULL,
    live_profile VARCHAR(40) NULL, -- its profile until it has ended; a profile has one session at a time
    number INT UNSIGNED NOT NULL, -- what the profile's opened was
    computer_id VARCHAR(40) NOT NULL,
    generation INT UNSIGNED NOT NULL,
    desktop_session_id VARCHAR(40) NULL,
    display INT UNSIGNED NULL,
    width INT UNSIGNED NOT NULL,
    height INT UNSIGNED NOT NULL,
    url TEXT NULL, -- the page to open first
    url_code VARCHAR(80) NULL, -- why that page did not open
    url_detail VARCHAR(500) NULL,
    status ENUM('starting','running','ending','saving','ended') NOT NULL,
    status_at DATETIME(3) NOT NULL,
    was_started TINYINT(1) NOT NULL,
    end_code VARCHAR(80) NULL,
    saved_at DATETIME(3) NULL,
    save_code VARCHAR(80) NULL, -- why its profile was not saved
    downloaded_files INT UNSIGNED NOT NULL,
    downloaded_bytes BIGINT UNSIGNED NOT NULL,
    download_code VARCHAR(80) NULL, -- why downloads did not reach the drive
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    UNIQUE KEY browser_sessions_profile (live_profile),
    KEY browser_sessions_space (space_id, id),
    KEY browser_sessions_open (computer_id, status),
    KEY browser_sessions_sweep (status, status_at),
    KEY browser_sessions_old (ended_at)
  )`,
  // Files of profiles, and of sessions without one, in the homes of computers.
  `CREATE TABLE IF NOT EXISTS browser_folders (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    owner_id VARCHAR(40) NOT NULL, -- the profile or the session
    computer_id VARCHAR(40) NOT NULL,
    remove_at DATETIME(3) NULL, -- when it is to be removed
    UNIQUE KEY browser_folders_owner (owner_id, computer_id),
    KEY browser_folders_remove (remove_at, id),
    KEY browser_folders_space (space_id)
  )`,
  // Downloads that are on the drive, so that each is put there once.
  `CREATE TABLE IF NOT EXISTS browser_downloads (
    session_id VARCHAR(40) NOT NULL,
    file_key BINARY(32) NOT NULL, -- hash of the name and the state of the file
    space_id VARCHAR(40) NOT NULL,
    PRIMARY KEY (session_id, file_key),
    KEY browser_downloads_space (space_id)
  )`,
  // Links by which scripts attach to browsers.
  `CREATE TABLE IF NOT EXISTS browser_links (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    token_hash BINARY(32) NULL, -- SHA-256 of the token in the link
    created_by VARCHAR(40) NOT NULL,
    api_key_id VARCHAR(40) NULL,
    login_session_id VARCHAR(40) NULL, -- the maker's sign-in, which the link ends with
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    UNIQUE KEY browser_links_token (token_hash),
    KEY browser_links_session (session_id, id),
    KEY browser_links_space (space_id)
  )`,
]);

/** Saved profiles go with the objects of the drive, folders with the computers. */
export const browsersSchema: AreaSchema = {
  initial,
  ofSpace: ['browser_downloads', 'browser_folders', 'browser_links', 'browser_sessions', 'browser_profiles'],
};
