import { QueryTypes } from 'sequelize';
import type { Migration } from './migrate.ts';

/** Of items, by their number. */
const atOnce = 5_000;

/**
 * What an object's content is held against, when it was kept, and what was found of it: `suspect` is to be looked at,
 * `damaged` has another content than it was kept with, `missing` is not in the store. Files that are there have their
 * hash already.
 */
export const contentFindings: Migration = {
  name: '0062-content-findings',
  async up({ sequelize }) {
    const [present] = await sequelize.query("SHOW COLUMNS FROM drive_objects LIKE 'finding'");
    if (present.length === 0) {
      await sequelize.query(
        `ALTER TABLE drive_objects ADD COLUMN sha256 BINARY(32) NULL, ADD COLUMN kept_at DATETIME(3) NULL,
          ADD COLUMN finding ENUM('suspect','damaged','missing') NULL, ADD COLUMN found_at DATETIME(3) NULL,
          ADD KEY drive_objects_findings (finding, kept_at)`,
      );
    }
    const largest = async (sql: string) => {
      const [row] = await sequelize.query<{ number: number | string | null }>(sql, { type: QueryTypes.SELECT });
      return Number(row?.number ?? 0);
    };
    const last = await largest('SELECT MAX(number) AS number FROM drive_items');
    for (let after = 0; after < last; after += atOnce) {
      const some = { replacements: [after, after + atOnce] };
      await sequelize.query(
        `UPDATE drive_items i JOIN drive_objects o ON o.object_key = i.object_key SET o.sha256 = i.sha256
          WHERE i.number > ? AND i.number <= ? AND i.sha256 IS NOT NULL`,
        some,
      );
      await sequelize.query(
        `UPDATE drive_items i JOIN drive_versions v ON v.item_id = i.id JOIN drive_objects o ON o.object_key = v.object_key
          SET o.sha256 = v.sha256 WHERE i.number > ? AND i.number <= ?`,
        some,
      );
    }
  },
};
