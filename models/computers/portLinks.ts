import { randomBytes } from 'node:crypto';
import type { RowDataPacket } from 'mysql2/promise';
import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { findLinks, type PortLink } from './portLink.ts';
import { portVisits } from './portVisits.ts';

const mostLinks = 100;
/** How long one that has ended is told from one that never was. */
const rememberedDays = 7;
const forgottenAtOnce = 200;

/** Links to ports, and who was let in by them. */
export function createPortLinks(database: Database) {
  const find = (sql: string, values: unknown[]) => findLinks(database, sql, values);

  return {
    /**
     * Makes a link; the same id again is the same link. Throws 422 `TOO_MANY_PORT_LINKS`.
     */
    async create(fields: NewPortLink, actor: Actor): Promise<PortLink> {
      const { id, spaceId, computerId } = fields;
      await forget(database, spaceId, new Date());
      await transaction(database, (tx) => insertPortLink(tx, fields, actor));
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

    ...portVisits(database),
  };
}

export type NewPortLink = Pick<PortLink, 'id' | 'spaceId' | 'computerId' | 'port' | 'createdBy' | 'apiKeyId'> & {
  ttlSeconds: number;
  runId?: string;
};

/** Writes a link; false where there is one with this id. Throws 404 for a space, 422 `TOO_MANY_PORT_LINKS`. */
export async function insertPortLink(tx: Transaction, fields: NewPortLink, actor: Actor): Promise<boolean> {
  const { id, spaceId, computerId, port, createdBy, apiKeyId, ttlSeconds, runId } = fields;
  const now = new Date();
  // The space’s row keeps two requests from counting past the limit together.
  const sql = 'SELECT id FROM spaces WHERE id = ? AND deleted_at IS NULL FOR UPDATE';
  if ((await select(tx, sql, [spaceId])).length === 0) throw notFound('space');
  const known = await select<{ id: string; holds: number }>(
    tx,
    'SELECT id, (revoked_at IS NULL AND expires_at > ?) AS holds FROM port_links WHERE computer_id = ?',
    [now, computerId],
  );
  if (known.some((link) => link.id === id)) return false;
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
    run_id: runId ?? null,
    created_at: now,
    expires_at: new Date(now.getTime() + ttlSeconds * 1_000),
  });
  await appendAudit(tx, spaceId, actor, 'port-link.created', id);
  return true;
}

export type PortLinks = ReturnType<typeof createPortLinks>;

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** Host names know no case. 130 bits. */
function newLabel(): string {
  return Array.from(randomBytes(26), (byte) => alphabet[byte % alphabet.length]).join('');
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
