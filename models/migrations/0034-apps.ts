import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** What of the drive is an app, and what its manifest said last. */
export const apps: Migration = {
  name: '0034-apps',
  async up({ sequelize }) {
    // `live` is 1, or NULL for one that was removed and whose rows are to follow. `manifest_tag` names the bytes that
    // `manifest` or `problem` was read from; `manifest` stays what it was last when it was right.
    await sequelize.query(`CREATE TABLE IF NOT EXISTS apps (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      item_id VARCHAR(40) NOT NULL,
      live TINYINT UNSIGNED NULL,
      space_id VARCHAR(40) NOT NULL,
      computer_id VARCHAR(40) NULL,
      manifest MEDIUMTEXT NOT NULL,
      manifest_tag VARCHAR(100) NOT NULL,
      problem MEDIUMTEXT NULL,
      created_by VARCHAR(40) NOT NULL,
      created_at DATETIME(3) NOT NULL,
      removed_at DATETIME(3) NULL,
      UNIQUE KEY apps_item (item_id, live),
      KEY apps_space (space_id, live, id),
      KEY apps_removed (removed_at, id)
    ) ${tableOptions}`);
  },
};
