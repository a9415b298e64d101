import type { Database } from '../../models/database/database.ts';

const digits = Array.from({ length: 10 }, (_, digit) => `SELECT ${digit} AS d`).join(' UNION ALL ');

/**
 * Inserts many items into a folder with one statement, bypassing the API: empty folders or empty files. They are named
 * `file 0` or `folder 0` and so on, with ids `<prefix>0` and so on. At most a million.
 */
export async function fillFolder(
  { sequelize }: Database,
  folder: { id: string; spaceId: string },
  count: number,
  options: { kind: 'file' | 'folder'; idPrefix: string },
): Promise<void> {
  const { kind, idPrefix } = options;
  const places = Array.from({ length: 6 }, (_, place) => `p${place}`);
  const number = places.map((place, i) => `${place}.d * ${10 ** i}`).join(' + ');
  await sequelize.query(
    `INSERT INTO drive_items (id, space_id, parent_id, kind, is_file, name, name_key, live, size, content_type, sha256, version,
                              created_by, created_at, updated_by, updated_at)
     SELECT CONCAT(:idPrefix, n), :spaceId, :folderId, :kind, :isFile, CONCAT(:kind, ' ', n), CONCAT(:kind, ' ', n), 1,
            :size, :contentType, :sha256, :isFile, 'usr_builder', NOW(3), 'usr_builder', NOW(3)
       FROM (SELECT ${number} AS n FROM ${places.map((place) => `(${digits}) ${place}`).join(', ')}) numbers
      WHERE n < :count`,
    {
      replacements: {
        idPrefix,
        spaceId: folder.spaceId,
        folderId: folder.id,
        kind,
        count,
        isFile: kind === 'file' ? 1 : 0,
        size: kind === 'file' ? 0 : null,
        contentType: kind === 'file' ? 'application/octet-stream' : null,
        sha256: kind === 'file' ? Buffer.alloc(32) : null,
      },
    },
  );
  await sequelize.query(
    'UPDATE drive_items SET child_count = child_count + ?, height = GREATEST(height, 1) WHERE id = ?',
    {
      replacements: [count, folder.id],
    },
  );
}
