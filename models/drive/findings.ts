import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** `suspect`: the content may differ from what was kept, and must be checked. */
export type Finding = 'suspect' | Damage;
/** `damaged`: the content differs from what was kept. `missing`: the store no longer has it. */
export type Damage = 'damaged' | 'missing';

/** When power may have been lost, objects kept within this time before the last one become suspect. */
const suspectMs = 10 * 60_000;
/** A few minutes of work can be unwritten in the kernel. Beyond this number, objects are not checked again. */
const maxSuspects = 100_000;
const atOnce = 1_000;

export function createContentFindings({ pool }: Pick<Database, 'pool'>) {
  async function rows<Row>(sql: string, values: unknown[]): Promise<Row[]> {
    return select<Row>(pool, sql, values);
  }

  return {
    /** Undefined if the drive does not keep an object with this key. `foundAt` goes with the finding. */
    async find(
      objectKey: string,
    ): Promise<{ sha256: Buffer | null; finding: Finding | null; foundAt: Date | null } | undefined> {
      const sql = `SELECT sha256, finding, found_at FROM drive_objects
        WHERE object_key = ? AND state = 'kept'`;
      const [row] = await rows<{ sha256: Buffer | null; finding: Finding | null; foundAt: Date | null }>(sql, [
        objectKey,
      ]);
      return row;
    },

    /** Records a finding, or null for an intact content. Returns true if this is new. */
    async note(objectKey: string, finding: Damage | null): Promise<boolean> {
      const sql = `UPDATE drive_objects SET finding = ?, found_at = ?
        WHERE object_key = ? AND state = 'kept' AND NOT finding <=> ?`;
      const foundAt = finding === null ? null : new Date();
      const { affectedRows } = await execute(pool, sql, [finding, foundAt, objectKey, finding]);
      return affectedRows > 0;
    },

    /** Records that an object was looked at, whatever the result, so that others are looked at before it is again. */
    async noteLook(objectKey: string): Promise<void> {
      const sql = 'UPDATE drive_objects SET found_at = ? WHERE object_key = ? AND finding IS NOT NULL';
      await execute(pool, sql, [new Date(), objectKey]);
    },

    /**
     * Called after a shutdown that may have been a loss of power: objects that were kept shortly before it become
     * suspect. The time of the shutdown is unknown, so this counts back from the last object that was kept.
     */
    async suspectLatest(): Promise<number> {
      const [last] = await rows<{ keptAt: Date }>(
        'SELECT kept_at FROM drive_objects WHERE finding IS NULL AND kept_at IS NOT NULL ORDER BY kept_at DESC LIMIT 1',
        [],
      );
      if (last === undefined) return 0;
      const since = new Date(last.keptAt.getTime() - suspectMs);
      const now = new Date();
      let count = 0;
      for (let more = true; more && count < maxSuspects; ) {
        const sql = `UPDATE drive_objects SET finding = 'suspect', found_at = ?
          WHERE finding IS NULL AND kept_at >= ? ORDER BY kept_at DESC LIMIT ${atOnce}`;
        const { affectedRows } = await execute(pool, sql, [now, since]);
        count += affectedRows;
        more = affectedRows === atOnce;
      }
      return count;
    },

    /** Keys of the suspects to check next: those whose last look is oldest, and among equals the smallest. */
    async suspects(limit: number): Promise<string[]> {
      const sql = `SELECT object_key FROM drive_objects
        WHERE finding = 'suspect' AND state = 'kept' ORDER BY found_at, size LIMIT ?`;
      return (await rows<{ objectKey: string }>(sql, [limit])).map(({ objectKey }) => objectKey);
    },

    /** Keys of objects last found damaged or missing before a time. They may be intact again. */
    async foundBefore(before: Date, limit: number): Promise<string[]> {
      const sql = `SELECT object_key FROM drive_objects
        WHERE finding IN ('damaged', 'missing') AND state = 'kept' AND found_at < ? ORDER BY found_at LIMIT ?`;
      return (await rows<{ objectKey: string }>(sql, [before, limit])).map(({ objectKey }) => objectKey);
    },

    async suspectCount(): Promise<number> {
      const sql = "SELECT COUNT(*) AS count FROM drive_objects WHERE finding = 'suspect' AND state = 'kept'";
      return Number((await rows<{ count: number | string }>(sql, []))[0]?.count);
    },

    /** The numbers of damaged and of missing objects. */
    async counts(): Promise<Map<Damage, number>> {
      const sql = `SELECT finding, COUNT(*) AS count FROM drive_objects
        WHERE finding IN ('damaged', 'missing') AND state = 'kept' GROUP BY finding`;
      const found = await rows<{ finding: Damage; count: number | string }>(sql, []);
      const counts = new Map(found.map(({ finding, count }) => [finding, Number(count)]));
      return new Map((['damaged', 'missing'] as const).map((finding) => [finding, counts.get(finding) ?? 0]));
    },

    /** Up to `limit` damaged or missing objects, with their space and the item whose current content it is. */
    list(limit: number): Promise<{ objectKey: string; spaceId: string; finding: Damage; itemId: string | null }[]> {
      const sql = `SELECT o.object_key, o.space_id, o.finding,
          (SELECT i.id FROM drive_items i WHERE i.space_id = o.space_id AND i.object_key = o.object_key LIMIT 1) AS itemId
        FROM drive_objects o WHERE o.finding IN ('damaged', 'missing') AND o.state = 'kept' LIMIT ?`;
      return rows(sql, [limit]);
    },
  };
}

/** The known damage of these contents of files or versions, by object key. */
export async function damageOf(
  { pool }: Pick<Database, 'pool'>,
  contents: readonly { objectKey: string | null }[],
): Promise<Map<string, Damage>> {
  const keys = contents.flatMap(({ objectKey }) => objectKey ?? []);
  if (keys.length === 0) return new Map();
  const sql = `SELECT object_key, finding FROM drive_objects
    WHERE object_key IN (?) AND finding IN ('damaged', 'missing')`;
  const found = await select(pool, sql, [keys]);
  return new Map(found.map(({ objectKey, finding }) => [objectKey as string, finding as Damage]));
}

/**
 * Findings about another store say nothing about this one, so the contents become suspect. A content that was kept
 * without a hash stays as it is until it is looked at again.
 */
export async function suspectFound({ pool }: Pick<Database, 'pool'>): Promise<void> {
  // An older backup may lack the column. Then it has no findings.
  const columns = await select(pool, "SHOW COLUMNS FROM drive_objects LIKE 'finding'");
  if (columns.length === 0) return;
  const sql = `UPDATE drive_objects SET finding = 'suspect', found_at = ?
    WHERE finding IN ('damaged', 'missing') AND sha256 IS NOT NULL`;
  await execute(pool, sql, [new Date()]);
}
