import type { Migration } from './migrate.ts';

const table = 'DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** The drive: its tree, its bytes in the object store, what is on its way there, and the words it is searched by. */
export const drive: Migration = {
  name: '0003-drive',
  async up({ sequelize }) {
    const statements = [
      // One row per space. Whoever changes the space's tree holds it locked; used_bytes is the sum of its objects'
      // sizes.
      `CREATE TABLE IF NOT EXISTS drives (
        space_id VARCHAR(40) NOT NULL PRIMARY KEY,
        number INT UNSIGNED NOT NULL AUTO_INCREMENT,
        used_bytes BIGINT UNSIGNED NOT NULL DEFAULT 0,
        UNIQUE KEY drives_number (number)
      ) ${table}`,
      // A row is there before its object is, and goes after it: no object is ever without one.
      `CREATE TABLE IF NOT EXISTS drive_objects (
        object_key VARCHAR(64) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        state ENUM('arriving','kept','doomed') NOT NULL,
        is_complete TINYINT UNSIGNED NOT NULL DEFAULT 0,
        size BIGINT UNSIGNED NOT NULL DEFAULT 0,
        lease_expires_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL,
        KEY drive_objects_sweep (state, lease_expires_at),
        KEY drive_objects_space (space_id, state)
      ) ${table}`,
      // The root of a container is a row whose parent is the space and whose name is the container's id. `live` is NULL
      // in the trash, so that a unique key (which lets NULLs repeat) holds among living siblings only.
      `CREATE TABLE IF NOT EXISTS drive_items (
        number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        parent_id VARCHAR(40) NOT NULL,
        kind VARCHAR(20) NOT NULL,
        is_file TINYINT UNSIGNED NOT NULL,
        name VARCHAR(255) NOT NULL,
        name_key VARBINARY(765) NOT NULL,
        live TINYINT UNSIGNED NULL DEFAULT 1,
        child_count INT UNSIGNED NOT NULL DEFAULT 0,
        height SMALLINT UNSIGNED NOT NULL DEFAULT 0,
        object_key VARCHAR(64) NULL,
        size BIGINT UNSIGNED NULL,
        content_type VARCHAR(255) NULL,
        sha256 BINARY(32) NULL,
        version INT UNSIGNED NOT NULL DEFAULT 0,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_by VARCHAR(40) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        trashed_by VARCHAR(40) NULL,
        trashed_at DATETIME(3) NULL,
        trashed_from VARCHAR(80) NULL,
        purging_at DATETIME(3) NULL,
        UNIQUE KEY drive_items_id (id),
        UNIQUE KEY drive_items_sibling (parent_id, name_key, live),
        KEY drive_items_listing (parent_id, live, is_file, name_key),
        KEY drive_items_trash (space_id, trashed_from, trashed_at),
        KEY drive_items_old_trash (trashed_at),
        KEY drive_items_purging (purging_at)
      ) ${table}`,
      // What a file held before; its present content is in its own row.
      `CREATE TABLE IF NOT EXISTS drive_versions (
        item_id VARCHAR(40) NOT NULL,
        version INT UNSIGNED NOT NULL,
        object_key VARCHAR(64) NOT NULL,
        size BIGINT UNSIGNED NOT NULL,
        content_type VARCHAR(255) NOT NULL,
        sha256 BINARY(32) NOT NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (item_id, version)
      ) ${table}`,
      // A file whose parts a client sends straight to the object store. Its object is the intent; this is the rest.
      `CREATE TABLE IF NOT EXISTS drive_uploads (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        object_key VARCHAR(64) NOT NULL,
        store_upload_id VARCHAR(1024) NOT NULL,
        target TEXT NOT NULL,
        size BIGINT UNSIGNED NOT NULL,
        part_size BIGINT UNSIGNED NOT NULL,
        operation_id VARCHAR(40) NULL,
        item_id VARCHAR(40) NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        UNIQUE KEY drive_uploads_object (object_key),
        KEY drive_uploads_space (space_id),
        KEY drive_uploads_sweep (expires_at)
      ) ${table}`,
      // The words of names (field 1) and of small texts (field 2), by the drive's number. FULLTEXT would read every
      // match of every space; this is one range of an index, newest first, in pages of any size.
      `CREATE TABLE IF NOT EXISTS drive_words (
        drive_number INT UNSIGNED NOT NULL,
        word VARBINARY(64) NOT NULL,
        item_number BIGINT UNSIGNED NOT NULL,
        fields TINYINT UNSIGNED NOT NULL,
        PRIMARY KEY (drive_number, word, item_number DESC),
        KEY drive_words_item (item_number, word)
      ) ${table}`,
    ];
    for (const statement of statements) await sequelize.query(statement);
  },
};
