import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** What of an app somebody has taken into use, and who has changed it since. */
export const appVersions: Migration = {
  name: '0070-app-versions',
  async up({ sequelize }) {
    const tables = [
      // `files` are those of a folder, by path; NULL for a repository. `authors` are whose changes brought it about,
      // and `reasons` say why it waits. `user_id`, `api_key_id` and `scopes` are of who took it into use.
      `CREATE TABLE IF NOT EXISTS app_versions (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        app_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        state VARCHAR(20) NOT NULL,
        content_hash CHAR(64) NOT NULL,
        manifest MEDIUMTEXT NOT NULL,
        manifest_tag VARCHAR(100) NOT NULL,
        files LONGTEXT NULL,
        authors MEDIUMTEXT NOT NULL,
        reasons MEDIUMTEXT NOT NULL,
        user_id VARCHAR(40) NULL,
        api_key_id VARCHAR(40) NULL,
        scopes TEXT NULL,
        created_at DATETIME(3) NOT NULL,
        decided_by VARCHAR(40) NULL,
        decided_at DATETIME(3) NULL,
        KEY app_versions_app (app_id, id),
        KEY app_versions_space (space_id)
      )`,
      // One for each app and author since the version in use. `number` counts their changes; `unseen` is 1 until the app
      // was looked at since the last of them, then NULL.
      `CREATE TABLE IF NOT EXISTS app_changes (
        id VARCHAR(130) NOT NULL PRIMARY KEY,
        app_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NULL,
        api_key_id VARCHAR(40) NULL,
        scopes TEXT NULL,
        turn_id VARCHAR(40) NULL,
        number INT UNSIGNED NOT NULL,
        unseen TINYINT UNSIGNED NULL,
        changed_at DATETIME(3) NOT NULL,
        KEY app_changes_app (app_id, changed_at, id),
        KEY app_changes_unseen (unseen, changed_at, id),
        KEY app_changes_space (space_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
    const columns = [
      ['version_id', 'VARCHAR(40) NULL'],
      ['waiting_id', 'VARCHAR(40) NULL'],
      ['runs_as', 'VARCHAR(40) NULL'],
      // 1 while what waits is in a working tree, where nothing else can run instead.
      ['tree_waits', 'TINYINT UNSIGNED NOT NULL DEFAULT 0'],
    ];
    for (const [column, type] of columns) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM apps LIKE '${column}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE apps ADD COLUMN ${column} ${type}`);
    }
    // What there is already counts as brought about by whoever made the app: the sweep takes it into use in their name.
    await sequelize.query(`INSERT IGNORE INTO app_changes
        (id, app_id, space_id, user_id, api_key_id, scopes, number, unseen, changed_at)
      SELECT CONCAT(id, ':', COALESCE(api_key_id, created_by)), id, space_id, created_by, api_key_id, scopes, 1, 1,
          created_at
        FROM apps WHERE live = 1 AND version_id IS NULL`);
  },
};
