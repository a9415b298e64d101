import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** The tree of files, their contents in the object store, uploads, and the search index. */
const initial = initialTables('drive', [
  // One row per space. A transaction that changes the tree of a space holds it locked.
  `CREATE TABLE IF NOT EXISTS drives (
    space_id VARCHAR(40) NOT NULL PRIMARY KEY,
    number INT UNSIGNED NOT NULL AUTO_INCREMENT, -- a short id for drive_words
    used_bytes BIGINT UNSIGNED NOT NULL DEFAULT 0, -- sum of the sizes of its objects
    UNIQUE KEY drives_number (number)
  )`,
  // Files and folders. The root of a container is a row whose parent is the space and whose name is the id of the
  // container.
  `CREATE TABLE IF NOT EXISTS drive_items (
    number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id VARCHAR(40) NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    parent_id VARCHAR(40) NOT NULL,
    kind VARCHAR(20) NOT NULL,
    is_file TINYINT UNSIGNED NOT NULL,
    name VARCHAR(255) NOT NULL, -- as it was given
    name_key VARBINARY(765) NOT NULL, -- normalized, for comparing and sorting
    -- NULL in the trash, so that drive_items_sibling holds among living items only
    live TINYINT UNSIGNED NULL DEFAULT 1,
    child_count INT UNSIGNED NOT NULL DEFAULT 0, -- its living children
    height SMALLINT UNSIGNED NOT NULL DEFAULT 0, -- at least this many levels are below it; it never decreases
    object_key VARCHAR(64) NULL,
    size BIGINT UNSIGNED NULL,
    content_type VARCHAR(255) NULL,
    sha256 BINARY(32) NULL,
    version INT UNSIGNED NOT NULL DEFAULT 0, -- counts the contents of a file
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    updated_by VARCHAR(40) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    trashed_by VARCHAR(40) NULL,
    trashed_at DATETIME(3) NULL,
    trashed_from VARCHAR(80) NULL, -- the container whose trash holds it
    purging_at DATETIME(3) NULL, -- set while it is permanently removed and hidden
    UNIQUE KEY drive_items_id (id),
    UNIQUE KEY drive_items_sibling (parent_id, name_key, live),
    KEY drive_items_listing (parent_id, live, is_file, name_key),
    KEY drive_items_trash (space_id, trashed_from, trashed_at),
    KEY drive_items_old_trash (trashed_at),
    KEY drive_items_purging (purging_at)
  )`,
  // Earlier contents of files. The present content is in drive_items.
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
  )`,
  // Contents in the object store. The row is written before its object and deleted after it.
  `CREATE TABLE IF NOT EXISTS drive_objects (
    object_key VARCHAR(64) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    state ENUM('arriving','kept','doomed') NOT NULL,
    is_complete TINYINT UNSIGNED NOT NULL DEFAULT 0, -- 1 once it was kept, so that no loose parts are in the store
    size BIGINT UNSIGNED NOT NULL DEFAULT 0,
    sha256 BINARY(32) NULL, -- NULL if it is not known
    -- suspect: to be checked; damaged: another content; missing: not in the store
    finding ENUM('suspect','damaged','missing') NULL,
    found_at DATETIME(3) NULL,
    lease_expires_at DATETIME(3) NULL, -- until then its writer is alive
    created_at DATETIME(3) NOT NULL,
    kept_at DATETIME(3) NULL, -- when it was stored
    KEY drive_objects_sweep (state, lease_expires_at),
    KEY drive_objects_space (space_id, state),
    KEY drive_objects_findings (finding, kept_at)
  )`,
  // Files whose parts a client sends straight to the object store.
  `CREATE TABLE IF NOT EXISTS drive_uploads (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    user_id VARCHAR(40) NOT NULL,
    object_key VARCHAR(64) NOT NULL,
    store_upload_id VARCHAR(1024) NOT NULL, -- id of the multipart upload in the store
    target TEXT NOT NULL, -- JSON: where the file goes
    size BIGINT UNSIGNED NOT NULL,
    part_size BIGINT UNSIGNED NOT NULL,
    operation_id VARCHAR(40) NULL,
    item_id VARCHAR(40) NULL, -- the file, once it is there
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    UNIQUE KEY drive_uploads_object (object_key),
    KEY drive_uploads_space (space_id),
    KEY drive_uploads_sweep (expires_at)
  )`,
  // The words of names and of small texts, newest item first. FULLTEXT would read the matches of all spaces; this is
  // one range of an index.
  `CREATE TABLE IF NOT EXISTS drive_words (
    drive_number INT UNSIGNED NOT NULL,
    word VARBINARY(64) NOT NULL,
    item_number BIGINT UNSIGNED NOT NULL,
    fields TINYINT UNSIGNED NOT NULL, -- 1 name, 2 text, 3 both
    PRIMARY KEY (drive_number, word, item_number DESC),
    KEY drive_words_item (item_number, word)
  )`,
]);

/**
 * Emptied before the other rows of a space, since objects go from the store too: by `purgeDrive` (purge.ts), and
 * removeDoomed (removeObjects.ts).
 */
export const driveSchema: AreaSchema = {
  initial,
  own: ['drive_items', 'drive_objects', 'drive_uploads', 'drive_versions', 'drive_words', 'drives'],
};
