import { randomBytes } from 'node:crypto';
import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import type { Actor } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { insertLink, revokeLink } from '../links/links.ts';
import { findLinks, mostLinks, type PortLink, portLinkKind } from './portLink.ts';
import { portVisits } from './portVisits.ts';

/** How long ended links are kept, to tell them from links that never existed. */
const rememberedDays = 7;
const forgottenAtOnce = 200;

/** Links to ports, and the browsers that they let in. */
export function createPortLinks(database: Database) {
  const find = (sql: string, values: unknown[]) => findLinks(database, sql, values);

  return {
    /** Makes a link. A known id returns the same link. Throws 422 `TOO_MANY_PORT_LINKS`. */
    async create(fields: NewPortLink, actor: Actor): Promise<PortLink> {
      const { id, spaceId, computerId } = fields;
      await forget(database, spaceId, new Date());
      await transaction(database, (tx) => insertPortLink(tx, fields, actor));
      return this.get({ spaceId, computerId, linkId: id });
    },

    /** The valid links, newest first. */
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

    /** Throws 404. A revoked link stays as it is. */
    async revoke(link: PortLink, actor: Actor): Promise<void> {
      await revokeLink(database, portLinkKind, { ...link, openedId: link.computerId }, actor);
    },

    ...portVisits(database),
  };
}

export type NewPortLink = Pick<PortLink, 'id' | 'spaceId' | 'computerId' | 'port' | 'createdBy' | 'apiKeyId'> & {
  ttlSeconds: number;
  runId?: string;
};

/** Writes a link. Returns false if the id is known. Throws 404 without a space, 422 `TOO_MANY_PORT_LINKS`. */
export async function insertPortLink(tx: Transaction, fields: NewPortLink, actor: Actor): Promise<boolean> {
  const { id, spaceId, computerId, port, createdBy, apiKeyId, ttlSeconds, runId } = fields;
  await lockLivingSpace(tx, spaceId);
  const columns = {
    spaceId,
    port,
    label: newLabel(),
    createdBy,
    apiKeyId,
    runId: runId ?? null,
  };
  return insertLink(tx, portLinkKind, { id, openedId: computerId, spaceId, ttlSeconds, columns }, actor);
}

export type PortLinks = ReturnType<typeof createPortLinks>;

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** Host names ignore case, hence base32. 26 characters have 130 bits. */
function newLabel(): string {
  return Array.from(randomBytes(26), (byte) => alphabet[byte % alphabet.length]).join('');
}

/** Removes links that ended long ago, a few with each new one. */
async function forget(database: Database, spaceId: string, now: Date): Promise<void> {
  const before = new Date(now.getTime() - rememberedDays * 86_400_000);
  const rows = await select(database.pool, 'SELECT id FROM port_links WHERE space_id = ? AND expires_at < ? LIMIT ?', [
    spaceId,
    before,
    forgottenAtOnce,
  ]);
  const ids = rows.map((row) => String(row.id));
  if (ids.length === 0) return;
  await execute(database.pool, 'DELETE FROM port_link_visits WHERE link_id IN (?)', [ids]);
  await execute(database.pool, 'DELETE FROM port_links WHERE id IN (?)', [ids]);
}
