import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Repositories, the bundles that they are made of, and what is asked of them and still to be done. */
export const gitRepositories: Migration = {
  name: '0029-git-repositories',
  async up({ sequelize }) {
    const tables = [
      // `item_id` is an item of the drive. `version` counts what has been saved; 0 is nothing. `tree_path` is below the
      // home of `computer_id`, and `tree_version` what the tree there was made of; NULL where there is none yet.
      `CREATE TABLE IF NOT EXISTS git_repositories (
        item_id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        computer_id VARCHAR(40) NOT NULL,
        tree_path VARCHAR(300) NOT NULL,
        tree_version INT UNSIGNED NULL,
        url VARCHAR(2000) NOT NULL,
        credential_id VARCHAR(40) NULL,
        branch VARCHAR(255) NULL,
        depth INT UNSIGNED NULL,
        filter VARCHAR(60) NULL,
        operation_id VARCHAR(40) NOT NULL,
        status ENUM('cloning','ready','failed') NOT NULL,
        status_at DATETIME(3) NOT NULL,
        error_code VARCHAR(80) NULL,
        error_detail VARCHAR(500) NULL,
        progress TEXT NULL,
        version INT UNSIGNED NOT NULL,
        default_branch VARCHAR(255) NULL,
        facts MEDIUMTEXT NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        removed_at DATETIME(3) NULL,
        UNIQUE KEY git_repositories_tree (computer_id, tree_path),
        KEY git_repositories_space (space_id, item_id),
        KEY git_repositories_removed (removed_at)
      )`,
      // In the order of their versions they restore a repository. The last one has the manifest: where each ref is.
      `CREATE TABLE IF NOT EXISTS git_bundles (
        item_id VARCHAR(40) NOT NULL,
        version INT UNSIGNED NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        object_key VARCHAR(64) NULL,
        bytes BIGINT UNSIGNED NOT NULL,
        manifest MEDIUMTEXT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (item_id, version),
        KEY git_bundles_space (space_id)
      )`,
      // One for each operation that a repository has still to do, by the operation's id. `step` counts those done.
      `CREATE TABLE IF NOT EXISTS git_orders (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        item_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        kind VARCHAR(60) NOT NULL,
        input MEDIUMTEXT NOT NULL,
        step INT UNSIGNED NOT NULL,
        result MEDIUMTEXT NULL,
        failure TEXT NULL,
        created_at DATETIME(3) NOT NULL,
        deadline_at DATETIME(3) NOT NULL,
        KEY git_orders_item (item_id, id),
        KEY git_orders_space (space_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
