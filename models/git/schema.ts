import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** Repositories and drafts, and the right to use git servers. */
const initial = initialTables('git', [
  // Repositories, each an item of the drive.
  `CREATE TABLE IF NOT EXISTS git_repositories (
    item_id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    computer_id VARCHAR(40) NOT NULL,
    tree_path VARCHAR(300) NOT NULL, -- of the working tree, below the home of the computer
    tree_version INT UNSIGNED NULL, -- the version that the tree was made from; NULL without a tree
    url VARCHAR(2000) NOT NULL,
    credential_id VARCHAR(40) NULL,
    branch VARCHAR(255) NULL,
    depth INT UNSIGNED NULL,
    filter VARCHAR(60) NULL, -- of a partial clone
    operation_id VARCHAR(40) NOT NULL,
    status ENUM('cloning','ready','failed') NOT NULL,
    status_at DATETIME(3) NOT NULL,
    error_code VARCHAR(80) NULL,
    error_detail VARCHAR(500) NULL,
    progress TEXT NULL, -- JSON: how far a clone is
    version INT UNSIGNED NOT NULL, -- counts what was saved; 0 is nothing
    default_branch VARCHAR(255) NULL,
    facts MEDIUMTEXT NULL, -- JSON: counts of its files, bytes and submodules
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    removed_at DATETIME(3) NULL, -- set while its rows are still to go
    UNIQUE KEY git_repositories_tree (computer_id, tree_path),
    KEY git_repositories_space (space_id, item_id),
    KEY git_repositories_removed (removed_at)
  )`,
  // Contents of repositories. Applied in the order of their versions, they restore a repository.
  `CREATE TABLE IF NOT EXISTS git_bundles (
    item_id VARCHAR(40) NOT NULL,
    version INT UNSIGNED NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    object_key VARCHAR(64) NULL,
    bytes BIGINT UNSIGNED NOT NULL,
    manifest MEDIUMTEXT NULL, -- JSON, in the last one: where each ref is
    created_at DATETIME(3) NOT NULL,
    PRIMARY KEY (item_id, version),
    KEY git_bundles_space (space_id)
  )`,
  // Operations that a repository still has to do, one after the other.
  `CREATE TABLE IF NOT EXISTS git_orders (
    id VARCHAR(40) NOT NULL PRIMARY KEY, -- the operation's
    item_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    kind VARCHAR(60) NOT NULL,
    input MEDIUMTEXT NOT NULL, -- JSON
    step INT UNSIGNED NOT NULL, -- counts the steps that are done
    result MEDIUMTEXT NULL, -- JSON
    failure TEXT NULL, -- JSON: why its last attempt failed
    created_at DATETIME(3) NOT NULL,
    deadline_at DATETIME(3) NOT NULL,
    KEY git_orders_item (item_id, id),
    KEY git_orders_space (space_id)
  )`,
  // Further working trees of a repository, each on its own branch. A draft's commits are refs of the repository.
  `CREATE TABLE IF NOT EXISTS git_drafts (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    item_id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    computer_id VARCHAR(40) NOT NULL,
    tree_path VARCHAR(600) NOT NULL,
    branch VARCHAR(255) NOT NULL,
    base_branch VARCHAR(255) NULL,
    base_commit VARCHAR(64) NULL,
    head VARCHAR(300) NULL, -- what is checked out, once it was saved
    is_filled TINYINT UNSIGNED NOT NULL, -- 1 once its tree has files
    status ENUM('preparing','ready','discarding') NOT NULL,
    status_at DATETIME(3) NOT NULL,
    error_code VARCHAR(80) NULL,
    error_detail VARCHAR(500) NULL,
    merged_commit VARCHAR(64) NULL,
    merged_at DATETIME(3) NULL,
    saved_at DATETIME(3) NULL,
    looked_at DATETIME(3) NOT NULL, -- when the sweeper last asked for something to be done with it
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY git_drafts_tree (computer_id, tree_path),
    KEY git_drafts_item (item_id, id),
    KEY git_drafts_space (space_id),
    KEY git_drafts_sweep (status, looked_at, id)
  )`,
  `CREATE TABLE IF NOT EXISTS git_credentials (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    name VARCHAR(200) NOT NULL,
    host VARCHAR(300) NOT NULL,
    path_prefix VARCHAR(500) NOT NULL,
    username VARCHAR(255) NOT NULL,
    sealed BLOB NULL, -- password or token; NULL if an installation makes tokens
    provider VARCHAR(40) NULL,
    installation_id VARCHAR(40) NULL, -- of a hosting provider, such as a GitHub App
    status ENUM('active','suspended','removed') NOT NULL,
    created_by VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY git_credentials_installation (space_id, provider, installation_id),
    KEY git_credentials_space (space_id, id)
  )`,
  // Installations at a hosting provider that a space may use, and who proved the right to use them.
  `CREATE TABLE IF NOT EXISTS git_installations (
    space_id VARCHAR(40) NOT NULL,
    provider VARCHAR(40) NOT NULL,
    installation_id VARCHAR(40) NOT NULL,
    account VARCHAR(200) NOT NULL,
    account_id VARCHAR(40) NOT NULL,
    proof ENUM('person','operator') NOT NULL,
    proven_by VARCHAR(100) NOT NULL, -- name of the account at the provider
    proven_by_id VARCHAR(40) NULL,
    repositories ENUM('all','listed') NOT NULL, -- whether all of it was proven, or git_installation_repositories
    status ENUM('active','suspended','removed') NOT NULL,
    created_by VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    due_at DATETIME(3) NOT NULL, -- when the provider is asked again
    PRIMARY KEY (space_id, provider, installation_id),
    KEY git_installations_installation (provider, installation_id),
    KEY git_installations_due (due_at)
  )`,
  `CREATE TABLE IF NOT EXISTS git_installation_repositories (
    space_id VARCHAR(40) NOT NULL,
    provider VARCHAR(40) NOT NULL,
    installation_id VARCHAR(40) NOT NULL,
    path VARCHAR(300) NOT NULL, -- lower case: providers do not distinguish the cases
    repository_id VARCHAR(40) NOT NULL,
    may_write TINYINT(1) NOT NULL,
    PRIMARY KEY (space_id, provider, installation_id, path)
  )`,
  // Users who are proving their right to an installation, starting at the provider.
  `CREATE TABLE IF NOT EXISTS git_connections (
    hash BINARY(32) NOT NULL PRIMARY KEY, -- SHA-256 of the state
    space_id VARCHAR(40) NOT NULL,
    user_id VARCHAR(40) NOT NULL,
    provider VARCHAR(40) NOT NULL,
    sealed MEDIUMBLOB NULL, -- then: what they may choose from
    expires_at DATETIME(3) NOT NULL,
    KEY git_connections_space (space_id),
    KEY git_connections_expires (expires_at)
  )`,
]);

/** `removeRepositoriesOf` (purge.ts) comes before the other rows of a space: it ends orders, and removes mirrors from disks. */
export const gitSchema: AreaSchema = {
  initial,
  ofSpace: [
    'git_credentials',
    'git_installations',
    'git_installation_repositories',
    'git_connections',
    'git_orders',
    'git_bundles',
    'git_drafts',
    'git_repositories',
  ],
};
