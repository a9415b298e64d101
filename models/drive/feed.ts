import type { Database } from '../database/database.ts';
import { instanceOf, select } from '../database/sql.ts';
import type { Placed } from './changes.ts';
import type { DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';
import { findPlaces } from './place.ts';

/** More changed items than this are not told one by one. */
const mostItems = 2_000;

/** What changed in the tree of a space, in all of its containers. */
export interface DriveChanges {
  /** The changes up to here are told. */
  revision: number;
  usedBytes: number;
  /** What changed cannot be told any more: the reader forgets what it knows of the tree. */
  reset: boolean;
  /** The changed items as they are now. One that is in the trash, or below such an item, is not live. */
  placed: Placed[];
}

interface FeedRow {
  driveRevision: number;
  purgedRevision: number;
  usedBytes: number;
  id: string | null;
}

/**
 * The changes after a revision. One statement reads the drive and its items, so that both are of the same moment: an
 * item that is purged meanwhile is either still among them, or the drive says so.
 */
export async function changesSince(database: Database, spaceId: string, after: number): Promise<DriveChanges> {
  const { DriveItem } = driveModels(database);
  const rows = await select<FeedRow>(
    database.pool,
    `SELECT d.revision AS driveRevision, d.purged_revision, d.used_bytes, i.*
       FROM drives d LEFT JOIN drive_items i FORCE INDEX (drive_items_revision)
         ON i.space_id = d.space_id AND i.revision > ?
      WHERE d.space_id = ? LIMIT ${mostItems + 1}`,
    [after, spaceId],
  );
  const [first] = rows;
  if (first === undefined) return { revision: 0, usedBytes: 0, reset: after > 0, placed: [] };
  const { driveRevision: revision, usedBytes } = first;
  const reset = after < first.purgedRevision || after > revision || rows.length > mostItems;
  const items = reset || first.id === null ? [] : rows.map((row) => instanceOf(DriveItem, row) as DriveItem);
  const ids = items.map(({ id }) => id);
  const places = await findPlaces(database, ids);
  const placed = items.flatMap((item) => {
    const place = places.get(item.id);
    return place === undefined ? [] : [{ item, place }];
  });
  return { revision, usedBytes, reset, placed };
}

/** The revisions of drives, by space. */
export async function revisionsOf(
  { pool }: Pick<Database, 'pool'>,
  spaceIds: readonly string[],
): Promise<Map<string, number>> {
  if (spaceIds.length === 0) return new Map();
  const sql = 'SELECT space_id, revision FROM drives WHERE space_id IN (?)';
  const rows = await select<{ spaceId: string; revision: number }>(pool, sql, [spaceIds]);
  return new Map(rows.map(({ spaceId, revision }) => [spaceId, revision]));
}
