import { hash, randomBytes } from 'node:crypto';
import type { ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import { type Actor, appendAudit } from '../audit.ts';
import { type Database, transaction } from '../database.ts';
import { DomainError, notFound } from '../errors.ts';
import { execute, insert, select } from '../sql.ts';

/** A link to a port of a computer. */
export interface PortLink {
  id: string;
  spaceId: string;
  computerId: string;
  port: number;
  /** The first part of its host name. */
  label: string;
  createdBy: string;
  /** The key that it was made with: it holds no longer than that. */
  apiKeyId: string | null;
  createdAt: Date;
  expiresAt: Date;
  revokedAt: Date | null;
}

/** What a visitor’s cookie opens; `isAdmitted` is false without a cookie of this link. */
export interface Visit {
  link: PortLink;
  isAdmitted: boolean;
}

const mostLinks = 100;
const mostVisitors = 500;
/** How long one that has ended is told from one that never was. */
const rememberedDays = 7;
const forgottenAtOnce = 200;

const columns = `l.id, l.space_id AS spaceId, l.computer_id AS computerId, l.port, l.label, l.created_by AS createdBy,
  l.api_key_id AS apiKeyId, l.created_at AS createdAt, l.expires_at AS expiresAt, l.revoked_at AS revokedAt`;

/** Links to ports. Tokens and cookies are kept as hashes. */
export function createPortLinks(database: Database) {
  async function find(sql: string, values: unknown[]): Promise<PortLink[]> {
    const [rows] = await database.pool.query<RowDataPacket[]>(
      `SELECT ${columns} FROM port_links l WHERE ${sql}`,
      values,
    );
    return rows as unknown as PortLink[];
  }

  return {
    /**
     * Makes a link; the same id again is the same link. Throws 422 `TOO_MANY_PORT_LINKS`.
     */
    async create(
      fields: Pick<PortLink, 'id' | 'spaceId' | 'computerId' | 'port' | 'createdBy' | 'apiKeyId'> & {
        ttlSeconds: number;
      },
      actor: Actor,
    ): Promise<PortLink> {
      const { id, spaceId, computerId, port, createdBy, apiKeyId, ttlSeconds } = fields;
      const now = new Date();
      await forget(database, spaceId, now);
      await transaction(database, async (tx) => {
        // The space’s row keeps two requests from counting past the limit together.
        const spaces = await select(tx, 'SELECT id FROM spaces WHERE id = ? AND deleted_at IS NULL FOR UPDATE', [
          spaceId,
        ]);
        if (spaces.length === 0) throw notFound('space');
        const known = await select<{ id: string; holds: number }>(
          tx,
          'SELECT id, (revoked_at IS NULL AND expires_at > ?) AS holds FROM port_links WHERE computer_id = ?',
          [now, computerId],
        );
        if (known.some((link) => link.id === id)) return;
        if (known.filter(({ holds }) => holds === 1).length >= mostLinks) {
          const detail = `A computer has at most ${mostLinks} links to its ports. Revoke some.`;
          throw new DomainError('unprocessable', 'TOO_MANY_PORT_LINKS', detail);
        }
        await insert(tx, 'port_links', {
          id,
          space_id: spaceId,
          computer_id: computerId,
          port,
          label: newLabel(),
          created_by: createdBy,
          api_key_id: apiKeyId,
          created_at: now,
          expires_at: new Date(now.getTime() + ttlSeconds * 1_000),
        });
        await appendAudit(tx, spaceId, actor, 'port-link.created', id);
      });
      return this.get({ spaceId, computerId, linkId: id });
    },

    /** Those that hold, newest first. */
    list: (computerId: string) =>
      find('l.computer_id = ? AND l.revoked_at IS NULL AND l.expires_at > ? ORDER BY l.id DESC LIMIT ?', [
        computerId,
        new Date(),
        mostLinks,
      ]),

    /** Throws 404. */
    async get({ spaceId, computerId, linkId }: { spaceId: string; computerId: string; linkId: string }) {
      const [link] = await find('l.id = ? AND l.computer_id = ? AND l.space_id = ?', [linkId, computerId, spaceId]);
      if (link === undefined) throw notFound('link');
      return link;
    },

    /** Throws 404. One that is revoked already stays as it is. */
    async revoke({ id, spaceId }: Pick<PortLink, 'id' | 'spaceId'>, actor: Actor): Promise<void> {
      await transaction(database, async (tx) => {
        const sql = 'UPDATE port_links SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL';
        const { affectedRows } = await execute(tx, sql, [new Date(), id]);
        if (affectedRows > 0) await appendAudit(tx, spaceId, actor, 'port-link.revoked', id);
      });
    },

    /** A token that lets one browser in. Throws 410 `PORT_LINK_ENDED`, 422 `TOO_MANY_VISITORS`. */
    async newToken(link: PortLink): Promise<string> {
      if (!holds(link)) throw new DomainError('gone', 'PORT_LINK_ENDED', 'This link has expired or was revoked.');
      const token = randomBytes(32).toString('base64url');
      await transaction(database, async (tx) => {
        await select(tx, 'SELECT id FROM port_links WHERE id = ? FOR UPDATE', [link.id]);
        const [counted] = await select<{ n: number }>(
          tx,
          'SELECT COUNT(*) AS n FROM port_link_visits WHERE link_id = ?',
          [link.id],
        );
        if ((counted?.n ?? 0) >= mostVisitors) {
          const detail = `A link lets at most ${mostVisitors} browsers in. Make another link.`;
          throw new DomainError('unprocessable', 'TOO_MANY_VISITORS', detail);
        }
        await insert(tx, 'port_link_visits', {
          token_hash: hashOf(token),
          link_id: link.id,
          space_id: link.spaceId,
          created_at: new Date(),
        });
      });
      return token;
    },

    /** Exchanges a token for a cookie, once: undefined when it is unknown, another link’s or used. */
    async admit(linkId: string, token: string): Promise<string | undefined> {
      const cookie = randomBytes(32).toString('base64url');
      const [result] = await database.pool.query<ResultSetHeader>(
        'UPDATE port_link_visits SET cookie_hash = ? WHERE token_hash = ? AND link_id = ? AND cookie_hash IS NULL',
        [hashOf(cookie), hashOf(token), linkId],
      );
      return result.affectedRows === 1 ? cookie : undefined;
    },

    /** The link of a host name’s label, and whether one of these cookies opens it. */
    async visit(label: string, cookies: readonly string[]): Promise<Visit | undefined> {
      const [link] = await find('l.label = ?', [label]);
      if (link === undefined) return undefined;
      if (cookies.length === 0) return { link, isAdmitted: false };
      const [rows] = await database.pool.query<RowDataPacket[]>(
        'SELECT 1 FROM port_link_visits WHERE link_id = ? AND cookie_hash IN (?) LIMIT 1',
        [link.id, cookies.map(hashOf)],
      );
      return { link, isAdmitted: rows.length > 0 };
    },
  };
}

export type PortLinks = ReturnType<typeof createPortLinks>;

export function holds({ revokedAt, expiresAt }: Pick<PortLink, 'revokedAt' | 'expiresAt'>): boolean {
  return revokedAt === null && expiresAt.getTime() > Date.now();
}

export const labelPattern = /^[a-z2-7]{26}$/;
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** Host names know no case. 130 bits. */
function newLabel(): string {
  return Array.from(randomBytes(26), (byte) => alphabet[byte % alphabet.length]).join('');
}

function hashOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Removes links that ended long ago, a few with each new one. */
async function forget(database: Database, spaceId: string, now: Date): Promise<void> {
  const before = new Date(now.getTime() - rememberedDays * 86_400_000);
  const [rows] = await database.pool.query<RowDataPacket[]>(
    'SELECT id FROM port_links WHERE space_id = ? AND expires_at < ? LIMIT ?',
    [spaceId, before, forgottenAtOnce],
  );
  const ids = rows.map((row) => String(row.id));
  if (ids.length === 0) return;
  await database.pool.query('DELETE FROM port_link_visits WHERE link_id IN (?)', [ids]);
  await database.pool.query('DELETE FROM port_links WHERE id IN (?)', [ids]);
}
