import type { ResultSetHeader, RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';

/** `suspect`: it may not be as it was kept, and is to be looked at. */
export type Finding = 'suspect' | Damage;
/** Another content than it was kept with, or no longer in the store. */
export type Damage = 'damaged' | 'missing';

/** How far behind the last object that was kept others become suspect when power may have been lost. */
const suspectMs = 10 * 60_000;
/** What the kernel has not written yet is a few minutes of work; more than this is not looked at again. */
const maxSuspects = 100_000;
const atOnce = 1_000;

/** What is found of objects' contents, whoever reads them. */
export type ContentFindings = ReturnType<typeof createContentFindings>;

export function createContentFindings({ pool }: Pick<Database, 'pool'>) {
  async function rows<Row>(sql: string, values: unknown[]): Promise<Row[]> {
    const [found] = await pool.query<RowDataPacket[]>(sql, values);
    return found as unknown as Row[];
  }

  return {
    /** Undefined for what is no object of the drive's, or still arriving. `foundAt` goes with the finding. */
    async find(
      objectKey: string,
    ): Promise<{ sha256: Buffer | null; finding: Finding | null; foundAt: Date | null } | undefined> {
      const sql = `SELECT sha256, finding, found_at AS foundAt FROM drive_objects
        WHERE object_key = ? AND state = 'kept'`;
      const [row] = await rows<{ sha256: Buffer | null; finding: Finding | null; foundAt: Date | null }>(sql, [
        objectKey,
      ]);
      return row;
    },

    /** True where that was not known: null is for content that is as it was kept. */
    async note(objectKey: string, finding: Damage | null): Promise<boolean> {
      const sql = `UPDATE drive_objects SET finding = ?, found_at = ?
        WHERE object_key = ? AND state = 'kept' AND NOT finding <=> ?`;
      const foundAt = finding === null ? null : new Date();
      const [{ affectedRows }] = await pool.query<ResultSetHeader>(sql, [finding, foundAt, objectKey, finding]);
      return affectedRows > 0;
    },

    /** An object was looked at, whatever came of it: the others are looked at before it is again. */
    async noteLook(objectKey: string): Promise<void> {
      const sql = 'UPDATE drive_objects SET found_at = ? WHERE object_key = ? AND finding IS NOT NULL';
      await pool.query(sql, [new Date(), objectKey]);
    },

    /**
     * After an end that may have been a loss of power: what was kept shortly before becomes suspect. The last object
     * that was kept was kept before that end, whenever it was.
     */
    async suspectLatest(): Promise<number> {
      const [last] = await rows<{ keptAt: Date }>(
        'SELECT kept_at AS keptAt FROM drive_objects WHERE finding IS NULL AND kept_at IS NOT NULL ORDER BY kept_at DESC LIMIT 1',
        [],
      );
      if (last === undefined) return 0;
      const since = new Date(last.keptAt.getTime() - suspectMs);
      const now = new Date();
      let count = 0;
      for (let more = true; more && count < maxSuspects; ) {
        const sql = `UPDATE drive_objects SET finding = 'suspect', found_at = ?
          WHERE finding IS NULL AND kept_at >= ? ORDER BY kept_at DESC LIMIT ${atOnce}`;
        const [{ affectedRows }] = await pool.query<ResultSetHeader>(sql, [now, since]);
        count += affectedRows;
        more = affectedRows === atOnce;
      }
      return count;
    },

    /**
     * Keys of what is to be looked at: first what has not been for longest, and of what became suspect together the
     * smallest.
     */
    async suspects(limit: number): Promise<string[]> {
      const sql = `SELECT object_key AS objectKey FROM drive_objects
        WHERE finding = 'suspect' AND state = 'kept' ORDER BY found_at, size LIMIT ?`;
      return (await rows<{ objectKey: string }>(sql, [limit])).map(({ objectKey }) => objectKey);
    },

    /** Keys of what was last found to be damaged or missing before a time: it may be whole again. */
    async foundBefore(before: Date, limit: number): Promise<string[]> {
      const sql = `SELECT object_key AS objectKey FROM drive_objects
        WHERE finding IN ('damaged', 'missing') AND state = 'kept' AND found_at < ? ORDER BY found_at LIMIT ?`;
      return (await rows<{ objectKey: string }>(sql, [before, limit])).map(({ objectKey }) => objectKey);
    },

    /** How many objects are still to be looked at. */
    async suspectCount(): Promise<number> {
      const sql = "SELECT COUNT(*) AS count FROM drive_objects WHERE finding = 'suspect' AND state = 'kept'";
      return Number((await rows<{ count: number | string }>(sql, []))[0]?.count);
    },

    /** How many objects are damaged, and how many are missing. */
    async counts(): Promise<Map<Damage, number>> {
      const sql = `SELECT finding, COUNT(*) AS count FROM drive_objects
        WHERE finding IN ('damaged', 'missing') AND state = 'kept' GROUP BY finding`;
      const found = await rows<{ finding: Damage; count: number | string }>(sql, []);
      const counts = new Map(found.map(({ finding, count }) => [finding, Number(count)]));
      return new Map((['damaged', 'missing'] as const).map((finding) => [finding, counts.get(finding) ?? 0]));
    },

    /** Some of them, with their space, and the item whose present content they are, if they are one's. */
    list(limit: number): Promise<{ objectKey: string; spaceId: string; finding: Damage; itemId: string | null }[]> {
      const sql = `SELECT o.object_key AS objectKey, o.space_id AS spaceId, o.finding,
          (SELECT i.id FROM drive_items i WHERE i.space_id = o.space_id AND i.object_key = o.object_key LIMIT 1) AS itemId
        FROM drive_objects o WHERE o.finding IN ('damaged', 'missing') AND o.state = 'kept' LIMIT ?`;
      return rows(sql, [limit]);
    },
  };
}

/** The damage that is known of the contents of files, or of their versions, by their objects' keys. */
export async function damageOf(
  { pool }: Pick<Database, 'pool'>,
  contents: readonly { objectKey: string | null }[],
): Promise<Map<string, Damage>> {
  const keys = contents.flatMap(({ objectKey }) => objectKey ?? []);
  if (keys.length === 0) return new Map();
  const sql = `SELECT object_key AS objectKey, finding FROM drive_objects
    WHERE object_key IN (?) AND finding IN ('damaged', 'missing')`;
  const [found] = await pool.query<RowDataPacket[]>(sql, [keys]);
  return new Map(found.map(({ objectKey, finding }) => [objectKey as string, finding as Damage]));
}

/**
 * What was found of contents in another store says nothing of those in this one: they are to be looked at. What was kept
 * without a hash stays missing until it is looked at again.
 */
export async function suspectFound({ pool }: Pick<Database, 'pool'>): Promise<void> {
  // A backup may be older than the column. Then it knows of no findings.
  const [columns] = await pool.query<RowDataPacket[]>("SHOW COLUMNS FROM drive_objects LIKE 'finding'");
  if (columns.length === 0) return;
  const sql = `UPDATE drive_objects SET finding = 'suspect', found_at = ?
    WHERE finding IN ('damaged', 'missing') AND sha256 IS NOT NULL`;
  await pool.query(sql, [new Date()]);
}
