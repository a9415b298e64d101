import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Browser profiles of spaces, and the sessions that use them. */
export const browsers: Migration = {
  name: '0040-browsers',
  async up({ sequelize }) {
    const tables = [
      // `opened` counts the sessions that have had it. `saved` is the number of the one after which it was last saved, to
      // the drive's object `object_key`.
      `CREATE TABLE IF NOT EXISTS browser_profiles (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        name VARCHAR(200) NOT NULL,
        computer_id VARCHAR(40) NOT NULL,
        opened INT UNSIGNED NOT NULL,
        saved INT UNSIGNED NOT NULL,
        object_key VARCHAR(64) NULL,
        size_bytes BIGINT UNSIGNED NULL,
        saved_at DATETIME(3) NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        KEY browser_profiles_space (space_id, id)
      )`,
      // A session belongs to one start of its computer, its `generation`. `live_profile` is its profile until it has
      // ended: one session at a time has that. `number` is what the profile's `opened` was then.
      `CREATE TABLE IF NOT EXISTS browser_sessions (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        profile_id VARCHAR(40) NULL,
        live_profile VARCHAR(40) NULL,
        number INT UNSIGNED NOT NULL,
        computer_id VARCHAR(40) NOT NULL,
        generation INT UNSIGNED NOT NULL,
        desktop_session_id VARCHAR(40) NULL,
        display INT UNSIGNED NULL,
        width INT UNSIGNED NOT NULL,
        height INT UNSIGNED NOT NULL,
        url TEXT NULL,
        status ENUM('starting','running','ending','saving','ended') NOT NULL,
        status_at DATETIME(3) NOT NULL,
        was_started TINYINT(1) NOT NULL,
        end_code VARCHAR(80) NULL,
        saved_at DATETIME(3) NULL,
        save_code VARCHAR(80) NULL,
        downloaded_files INT UNSIGNED NOT NULL,
        downloaded_bytes BIGINT UNSIGNED NOT NULL,
        download_code VARCHAR(80) NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        UNIQUE KEY browser_sessions_profile (live_profile),
        KEY browser_sessions_space (space_id, id),
        KEY browser_sessions_open (computer_id, status),
        KEY browser_sessions_sweep (status, status_at),
        KEY browser_sessions_old (ended_at)
      )`,
      // What sessions have of files in the homes of computers: of a profile, or of a session that has none. From
      // `remove_at` on it is to be removed.
      `CREATE TABLE IF NOT EXISTS browser_folders (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        owner_id VARCHAR(40) NOT NULL,
        computer_id VARCHAR(40) NOT NULL,
        remove_at DATETIME(3) NULL,
        UNIQUE KEY browser_folders_owner (owner_id, computer_id),
        KEY browser_folders_remove (remove_at, id),
        KEY browser_folders_space (space_id)
      )`,
      // What was put into the drive, so that it is put there once. `file_key` is made of the file's name and its state.
      `CREATE TABLE IF NOT EXISTS browser_downloads (
        session_id VARCHAR(40) NOT NULL,
        file_key BINARY(32) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        PRIMARY KEY (session_id, file_key),
        KEY browser_downloads_space (space_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
