import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/** The requested part of a list. `after` is the last id that was shown. */
export interface Part {
  limit: number;
  after?: string | undefined;
}

export interface UserOverview {
  id: string;
  email: string;
  name: string;
  /** How many spaces the user belongs to. */
  spaces: number;
  createdAt: Date;
  disabledAt: Date | null;
}

export interface SpaceOverview {
  id: string;
  name: string;
  /** The e-mail addresses of the owners. */
  owners: string[];
  members: number;
  createdAt: Date;
}

export interface KeyOverview {
  id: string;
  email: string;
  name: string;
  /** The key's beginning. */
  hint: string;
  scopes: string[];
  createdAt: Date;
  lastUsedAt: Date | null;
  expiresAt: Date | null;
}

export interface SessionOverview {
  id: string;
  email: string;
  label: string | null;
  createdAt: Date;
  expiresAt: Date;
}

/** The operator's lists of all users, spaces, keys and sessions, a page at a time, oldest first. */
export function createOverview(database: Database) {
  /** Ignores filters without a value. */
  async function read<Row>(sql: string, id: string, { limit, after }: Part, filters: [string, unknown][] = []) {
    const wanted = [...filters, [`${id} > ?`, after] as [string, unknown]].filter(([, value]) => value !== undefined);
    const where = wanted.map(([condition]) => ` AND ${condition}`).join('');
    return select<Row>(database.pool, `${sql}${where} ORDER BY ${id} LIMIT ?`, [
      ...wanted.map(([, value]) => value),
      limit,
    ]);
  }

  return {
    users: (part: Part) =>
      read<UserOverview>(
        `SELECT u.id, u.email, u.name, u.created_at, u.disabled_at,
                (SELECT COUNT(*) FROM space_members m JOIN spaces s ON s.id = m.space_id
                  WHERE m.user_id = u.id AND s.deleted_at IS NULL) AS spaces
           FROM users u WHERE TRUE`,
        'u.id',
        part,
      ),

    async spaces(part: Part): Promise<SpaceOverview[]> {
      const rows = await read<Omit<SpaceOverview, 'owners' | 'members'>>(
        'SELECT s.id, s.name, s.created_at FROM spaces s WHERE s.deleted_at IS NULL',
        's.id',
        part,
      );
      if (rows.length === 0) return [];
      const people = await select<{ spaceId: string; role: string; email: string }>(
        database.pool,
        `SELECT m.space_id, m.role, u.email FROM space_members m JOIN users u ON u.id = m.user_id
          WHERE m.space_id IN (?)`,
        [rows.map(({ id }) => id)],
      );
      const bySpace = Map.groupBy(people, (person) => person.spaceId);
      return rows.map((row) => {
        const members = bySpace.get(row.id) ?? [];
        const owners = members.filter(({ role }) => role === 'owner').map(({ email }) => email);
        return { ...row, owners, members: members.length };
      });
    },

    /** Keys that are not revoked. Includes expired ones, because they explain a refusal. */
    async keys(part: Part, userId?: string): Promise<KeyOverview[]> {
      const rows = await read<Omit<KeyOverview, 'scopes'> & { scopes: string }>(
        `SELECT k.id, u.email, k.name, k.hint, k.scopes, k.created_at, k.last_used_at, k.expires_at
           FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.revoked_at IS NULL`,
        'k.id',
        part,
        [['k.user_id = ?', userId]],
      );
      return rows.map((row) => ({ ...row, scopes: JSON.parse(row.scopes) as string[] }));
    },

    /** Sessions that are still valid. */
    sessions: (part: Part, userId?: string) =>
      read<SessionOverview>(
        `SELECT s.id, u.email, s.label, s.created_at, s.expires_at
           FROM sessions s JOIN users u ON u.id = s.user_id
          WHERE s.revoked_at IS NULL AND u.disabled_at IS NULL`,
        's.id',
        part,
        [
          ['s.expires_at > ?', new Date()],
          ['s.user_id = ?', userId],
        ],
      ),

    /** The user of a key or session. Undefined when there is none. */
    async ownerOf(kind: 'key' | 'session', id: string): Promise<string | undefined> {
      const table = { key: 'api_keys', session: 'sessions' }[kind];
      const rows = await select<{ userId: string }>(database.pool, `SELECT user_id FROM ${table} WHERE id = ?`, [id]);
      return rows[0]?.userId;
    },
  };
}
