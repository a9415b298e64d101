import type { Migration } from './migrate.ts';

/** Recordings of desktop sessions, until they are on the drive. */
export const desktopRecordings: Migration = {
  name: '0044-desktop-recordings',
  async up({ sequelize }) {
    // `running_on` is the session while something may be recording it, so one at a time does. Without `settled_at`,
    // something is still to be done for it; `has_file` is whether its computer may have what was written. It goes to the
    // drive on behalf of `asked_by`.
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS desktop_recordings (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        computer_id VARCHAR(40) NOT NULL,
        session_id VARCHAR(40) NOT NULL,
        running_on VARCHAR(40) NULL,
        status ENUM('starting','recording','stopping','saving','saved','failed','discarding','discarded') NOT NULL,
        status_at DATETIME(3) NOT NULL,
        name VARCHAR(255) NOT NULL,
        folder_id VARCHAR(40) NULL,
        folder_path TEXT NULL,
        display INT UNSIGNED NOT NULL,
        width INT UNSIGNED NOT NULL,
        height INT UNSIGNED NOT NULL,
        frames_per_second INT UNSIGNED NOT NULL,
        max_seconds INT UNSIGNED NOT NULL,
        max_bytes BIGINT UNSIGNED NOT NULL,
        has_file TINYINT(1) NOT NULL,
        end_code VARCHAR(80) NULL,
        error_code VARCHAR(80) NULL,
        item_id VARCHAR(40) NULL,
        size BIGINT UNSIGNED NULL,
        duration_ms BIGINT UNSIGNED NULL,
        created_by VARCHAR(40) NOT NULL,
        asked_by VARCHAR(40) NOT NULL,
        api_key_id VARCHAR(40) NULL,
        created_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        settled_at DATETIME(3) NULL,
        UNIQUE KEY desktop_recordings_running (running_on),
        KEY desktop_recordings_session (session_id, id),
        KEY desktop_recordings_sweep (settled_at, status_at),
        KEY desktop_recordings_space (space_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
    );
  },
};
