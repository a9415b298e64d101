import { type Actor, appendAudit } from '../audit/audit.ts';
import { deleteInBatches } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';

/** The hosts that a space's requests may reach, as patterns. An empty `allow` allows everything that is not denied. */
export interface EgressLists {
  allow: string[];
  deny: string[];
}

export interface EgressSettings extends EgressLists {
  updatedBy: string | null;
  updatedAt: Date | null;
}

/** A decision of the guard about one connection. */
export interface EgressEntry {
  purpose: string;
  host: string;
  port: number;
  address: string | null;
  refusal: string | null;
  /** The secret whose value was sent there. */
  secret?: string | null;
}

export interface LoggedEgress extends EgressEntry {
  number: string;
  at: Date;
}

const keptMs = 30 * 86_400_000;
/** Limit per space, so that a program that connects in a loop does not fill the disk. */
const keptEntries = 500_000;

/** Each space's rules for outgoing requests, and their log. */
export function createEgressRules(database: Database) {
  async function settings(spaceId: string): Promise<EgressSettings> {
    const sql = `SELECT allow_list, deny_list, updated_by, updated_at
         FROM egress_policies WHERE space_id = ?`;
    const [row] = await select(database.pool, sql, [spaceId]);
    if (row === undefined) return { allow: [], deny: [], updatedBy: null, updatedAt: null };
    const { allowList, denyList, updatedBy, updatedAt } = row;
    return {
      allow: JSON.parse(String(allowList)) as string[],
      deny: JSON.parse(String(denyList)) as string[],
      updatedBy: String(updatedBy),
      updatedAt: updatedAt as Date,
    };
  }

  async function record(spaceId: string, entry: EgressEntry): Promise<void> {
    const { purpose, host, port, address, refusal, secret = null } = entry;
    await execute(
      database.pool,
      'INSERT INTO egress_log (space_id, purpose, host, port, address, refusal, secret, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      [spaceId, purpose, host.slice(0, 255), port, address, refusal?.slice(0, 200) ?? null, secret, new Date()],
    );
  }

  return {
    settings,

    /** Replaces both lists. */
    async put(spaceId: string, { allow, deny }: EgressLists, actor: Actor & { userId: string }): Promise<void> {
      await transaction(database, async (tx) => {
        await execute(
          tx,
          `INSERT INTO egress_policies (space_id, allow_list, deny_list, updated_by, updated_at) VALUES (?, ?, ?, ?, ?)
           ON DUPLICATE KEY UPDATE allow_list = VALUES(allow_list), deny_list = VALUES(deny_list),
             updated_by = VALUES(updated_by), updated_at = VALUES(updated_at)`,
          [spaceId, JSON.stringify(allow), JSON.stringify(deny), actor.userId, new Date()],
        );
        await appendAudit(tx, spaceId, actor, 'egress.changed', null);
      });
    },

    /** The owner of a request, for the guard: the space's current lists, and its log. */
    async owner(spaceId: string, purpose: string) {
      const policy: EgressLists = await settings(spaceId);
      return { purpose, policy, record: (entry: EgressEntry) => record(spaceId, entry) };
    },

    /** The log, newest first. */
    async list(spaceId: string, page: PageRequest): Promise<Page<LoggedEgress>> {
      return readPage(database, page, {
        sql: `SELECT CAST(number AS CHAR) AS number, purpose, host, port, address, refusal, secret, at FROM egress_log
          WHERE space_id = ?`,
        values: [spaceId],
        by: 'egress_log.number',
        order: 'desc',
        cursorForm: /^\d{1,20}$/,
      });
    },

    /** Deletes entries older than a month, and those that are more than a space has room for. */
    async purge(now: Date, maxEntries = keptEntries, onBatch?: () => void): Promise<number> {
      const before = new Date(now.getTime() - keptMs);
      let deleted = await deleteInBatches(database, 'DELETE FROM egress_log WHERE at < ? LIMIT ?', [before], onBatch);
      // Numbers go up one by one: where all of them are few, no space has many, and nothing is counted.
      const [numbers] = await select(database.pool, 'SELECT MAX(number) - MIN(number) AS span FROM egress_log');
      if (Number(numbers?.span ?? 0) < maxEntries) return deleted;
      const sql = 'SELECT space_id FROM egress_log GROUP BY space_id HAVING COUNT(*) > ?';
      const full = await select(database.pool, sql, [maxEntries]);
      for (const { spaceId } of full) {
        const sql = 'SELECT number FROM egress_log WHERE space_id = ? ORDER BY number DESC LIMIT 1 OFFSET ?';
        const [oldest] = await select(database.pool, sql, [spaceId, maxEntries - 1]);
        const statement = 'DELETE FROM egress_log WHERE space_id = ? AND number < ? LIMIT ?';
        deleted += await deleteInBatches(database, statement, [spaceId, oldest?.number ?? 0], onBatch);
      }
      return deleted;
    },
  };
}

export type EgressRules = ReturnType<typeof createEgressRules>;

/** How many spaces restrict outgoing requests, for the operator. */
export async function countEgressLists({
  pool,
}: Pick<Database, 'pool'>): Promise<{ allowing: number; denying: number }> {
  const [counts] = await select(
    pool,
    `SELECT COALESCE(SUM(p.allow_list <> '[]'), 0) AS allowing, COALESCE(SUM(p.deny_list <> '[]'), 0) AS denying
       FROM egress_policies p JOIN spaces s ON s.id = p.space_id WHERE s.deleted_at IS NULL`,
  );
  return { allowing: Number(counts?.allowing), denying: Number(counts?.denying) };
}
