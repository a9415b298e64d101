import type { Migration } from './migration.ts';

const changesOf = {
  drives: {
    first: 'revision',
    changes: `ADD COLUMN revision BIGINT UNSIGNED NOT NULL DEFAULT 0, -- counts the changes of its tree
      ADD COLUMN purged_revision BIGINT UNSIGNED NOT NULL DEFAULT 0 -- the latest revision of an item that is gone`,
  },
  drive_items: {
    first: 'revision',
    changes: `ADD COLUMN revision BIGINT UNSIGNED NOT NULL DEFAULT 0, -- the drive's when this item last changed
      ADD COLUMN modified_at DATETIME(3) NULL, -- of its content, as its writer says; NULL: updated_at
      ADD COLUMN is_executable BOOLEAN NOT NULL DEFAULT 0,
      ADD COLUMN link_target TEXT NULL, -- where a symlink leads
      ADD KEY drive_items_revision (space_id, revision)`,
  },
  computers: {
    first: 'has_drive',
    changes: `ADD COLUMN has_drive BOOLEAN NOT NULL DEFAULT 1, -- 1: the drive of its space is in its home
      ADD COLUMN drive_report TEXT NULL -- JSON: what its host last said of the drive in it`,
  },
};

/** A feed of what changes in a drive, and the drive inside computers. */
export const driveRevisions: Migration = {
  name: '0006-drive-revisions',
  async up(queryInterface) {
    for (const [table, { first, changes }] of Object.entries(changesOf)) {
      if (first in (await queryInterface.describeTable(table))) continue;
      await queryInterface.sequelize.query(`ALTER TABLE ${table} ${changes}`);
    }
  },
};
