import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Drafts: further working trees of a repository, each on a branch of its own. */
export const gitDrafts: Migration = {
  name: '0031-git-drafts',
  async up({ sequelize }) {
    // Its commits and what is not committed are refs of the repository `item_id`. `head` is what is checked out, once
    // it has been saved; `looked_at` is when the sweeper has last asked for something to be done with it.
    await sequelize.query(`CREATE TABLE IF NOT EXISTS git_drafts (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        item_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        computer_id VARCHAR(40) NOT NULL,
        tree_path VARCHAR(600) NOT NULL,
        branch VARCHAR(255) NOT NULL,
        base_branch VARCHAR(255) NULL,
        base_commit VARCHAR(64) NULL,
        head VARCHAR(300) NULL,
        is_filled TINYINT UNSIGNED NOT NULL,
        status ENUM('preparing','ready','discarding') NOT NULL,
        status_at DATETIME(3) NOT NULL,
        error_code VARCHAR(80) NULL,
        error_detail VARCHAR(500) NULL,
        merged_commit VARCHAR(64) NULL,
        merged_at DATETIME(3) NULL,
        saved_at DATETIME(3) NULL,
        looked_at DATETIME(3) NOT NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        UNIQUE KEY git_drafts_tree (computer_id, tree_path),
        KEY git_drafts_item (item_id, id),
        KEY git_drafts_space (space_id),
        KEY git_drafts_sweep (status, looked_at, id)
      ) ${tableOptions}`);
  },
};
