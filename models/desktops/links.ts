import type { RowDataPacket } from 'mysql2/promise';
import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Actor } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { insertLink, type LinkKind } from '../links/links.ts';
import type { DesktopRef } from './session.ts';

/** A link to look at a desktop, or to use it. */
export interface DesktopLink {
  id: string;
  spaceId: string;
  sessionId: string;
  /** Whether its users may type. */
  control: boolean;
  ttlSeconds: number;
  createdBy: string;
  apiKeyId: string | null;
  createdAt: Date;
  /** Null for the session’s own link, which lasts as long as the session. */
  expiresAt: Date | null;
  revokedAt: Date | null;
}

export const defaultLinkSeconds = 600;
const most = 100;

export const desktopLinks: LinkKind = {
  table: 'desktop_links',
  opens: 'session_id',
  most,
  tooMany: { code: 'TOO_MANY_DESKTOP_LINKS', detail: `A desktop session has at most ${most} links. Revoke some.` },
  endedCode: 'DESKTOP_LINK_ENDED',
  audit: 'desktop-link',
  isRemembered: true,
  // The session’s own link has no end.
  counted: 'expires_at IS NOT NULL',
};

const columns = `id, space_id, session_id, control, ttl_seconds, created_by, api_key_id, created_at, expires_at,
  revoked_at`;

type LinkFields = Pick<
  DesktopLink,
  'id' | 'spaceId' | 'sessionId' | 'control' | 'ttlSeconds' | 'createdBy' | 'apiKeyId'
>;

/** Makes the session's own link, with which everyone who may read the session may look. */
export async function insertOwnLink(
  tx: Transaction,
  { sessionId, spaceId, createdBy }: Pick<DesktopLink, 'sessionId' | 'spaceId' | 'createdBy'>,
): Promise<void> {
  await insert(tx, 'desktop_links', {
    id: newId('desktopLink'),
    sessionId,
    ...columnsOf({ spaceId, createdBy, control: false, ttlSeconds: defaultLinkSeconds, apiKeyId: null }),
    createdAt: new Date(),
  });
}

function columnsOf(fields: Omit<LinkFields, 'id' | 'sessionId'>): Record<string, unknown> {
  return {
    spaceId: fields.spaceId,
    control: fields.control ? 1 : 0,
    ttlSeconds: fields.ttlSeconds,
    createdBy: fields.createdBy,
    apiKeyId: fields.apiKeyId,
  };
}

/** Makes a link. The same id again is the same link. Throws 422 `TOO_MANY_DESKTOP_LINKS`. */
export async function createDesktopLink(database: Database, fields: LinkFields, actor: Actor): Promise<void> {
  const { id, spaceId, sessionId, ttlSeconds } = fields;
  await transaction(database, async (tx) => {
    // The lock on the session’s row keeps two requests from passing the limit together.
    await select(tx, 'SELECT id FROM desktop_sessions WHERE id = ? FOR UPDATE', [sessionId]);
    const link = { id, openedId: sessionId, spaceId, ttlSeconds, columns: columnsOf(fields) };
    await insertLink(tx, desktopLinks, link, actor);
  });
}

export async function findDesktopLink({ pool }: Pick<Database, 'pool'>, id: string): Promise<DesktopLink | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM desktop_links WHERE id = ?`, [id]);
  return row && linkOf(row);
}

/** The own links of these sessions that were not revoked. */
export async function ownLinksOf({ pool }: Pick<Database, 'pool'>, sessionIds: string[]): Promise<DesktopLink[]> {
  if (sessionIds.length === 0) return [];
  const rows = await select(
    pool,
    `SELECT ${columns} FROM desktop_links WHERE session_id IN (?) AND expires_at IS NULL AND revoked_at IS NULL`,
    [sessionIds],
  );
  return rows.map(linkOf);
}

/** Throws 404. */
export async function getDesktopLink(
  database: Pick<Database, 'pool'>,
  { sessionId, spaceId, linkId }: DesktopRef & { linkId: string },
): Promise<DesktopLink> {
  const link = await findDesktopLink(database, linkId);
  if (link === undefined || link.sessionId !== sessionId || link.spaceId !== spaceId) throw notFound('link');
  return link;
}

/** Extends a link whose page is open, and returns its new end. */
export async function renewDesktopLink({ pool }: Pick<Database, 'pool'>, link: DesktopLink): Promise<Date> {
  const until = new Date(Date.now() + link.ttlSeconds * 1_000);
  const sql = 'UPDATE desktop_links SET expires_at = ? WHERE id = ? AND expires_at IS NOT NULL AND expires_at < ?';
  await execute(pool, sql, [until, link.id, until]);
  return until;
}

function linkOf(row: RowDataPacket): DesktopLink {
  return { ...(row as DesktopLink), control: (row as { control: unknown }).control === 1 };
}
