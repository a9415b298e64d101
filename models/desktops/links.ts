import type { ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import type { DesktopRef } from './session.ts';

/** A way to look at a desktop, or to use it. */
export interface DesktopLink {
  id: string;
  spaceId: string;
  sessionId: string;
  /** Whether whoever has it may type. */
  control: boolean;
  ttlSeconds: number;
  createdBy: string;
  apiKeyId: string | null;
  createdAt: Date;
  /** Null for the session’s own, which lasts as long as that. */
  expiresAt: Date | null;
  revokedAt: Date | null;
}

export const defaultLinkSeconds = 600;
const mostLinks = 100;

const columns = `id, space_id AS spaceId, session_id AS sessionId, control, ttl_seconds AS ttlSeconds,
  created_by AS createdBy, api_key_id AS apiKeyId, created_at AS createdAt, expires_at AS expiresAt,
  revoked_at AS revokedAt`;

type LinkFields = Pick<
  DesktopLink,
  'id' | 'spaceId' | 'sessionId' | 'control' | 'ttlSeconds' | 'createdBy' | 'apiKeyId'
>;

export function linkHolds({ revokedAt, expiresAt }: DesktopLink): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt.getTime() > Date.now());
}

/** The link that comes with a session, by which everybody may look who may read that. */
export async function insertOwnLink(
  tx: Transaction,
  { sessionId, spaceId, createdBy }: Pick<DesktopLink, 'sessionId' | 'spaceId' | 'createdBy'>,
): Promise<void> {
  const fields = { sessionId, spaceId, createdBy, control: false, ttlSeconds: defaultLinkSeconds, apiKeyId: null };
  await insertLink(tx, { ...fields, id: newId('desktopLink') }, null);
}

async function insertLink(tx: Transaction, fields: LinkFields, expiresAt: Date | null): Promise<void> {
  await insert(tx, 'desktop_links', {
    id: fields.id,
    space_id: fields.spaceId,
    session_id: fields.sessionId,
    control: fields.control ? 1 : 0,
    ttl_seconds: fields.ttlSeconds,
    created_by: fields.createdBy,
    api_key_id: fields.apiKeyId,
    created_at: new Date(),
    expires_at: expiresAt,
  });
}

/** Makes a link; the same id again is the same link. Throws 422 `TOO_MANY_DESKTOP_LINKS`. */
export async function createDesktopLink(database: Database, fields: LinkFields, actor: Actor): Promise<void> {
  const now = new Date();
  await transaction(database, async (tx) => {
    // The session’s row keeps two requests from counting past the limit together.
    await select(tx, 'SELECT id FROM desktop_sessions WHERE id = ? FOR UPDATE', [fields.sessionId]);
    const known = await select<{ id: string; holds: number }>(
      tx,
      'SELECT id, (revoked_at IS NULL AND expires_at > ?) AS holds FROM desktop_links WHERE session_id = ?',
      [now, fields.sessionId],
    );
    if (known.some(({ id }) => id === fields.id)) return;
    if (known.filter(({ holds }) => holds === 1).length >= mostLinks) {
      const detail = `A desktop session has at most ${mostLinks} links. Revoke some.`;
      throw new DomainError('unprocessable', 'TOO_MANY_DESKTOP_LINKS', detail);
    }
    await insertLink(tx, fields, new Date(now.getTime() + fields.ttlSeconds * 1_000));
    await appendAudit(tx, fields.spaceId, actor, 'desktop-link.created', fields.id);
  });
}

export async function findDesktopLink({ pool }: Pick<Database, 'pool'>, id: string): Promise<DesktopLink | undefined> {
  const [rows] = await pool.query<RowDataPacket[]>(`SELECT ${columns} FROM desktop_links WHERE id = ?`, [id]);
  return rows[0] && linkOf(rows[0]);
}

/** The own links of these sessions, where they were not revoked. */
export async function ownLinksOf({ pool }: Pick<Database, 'pool'>, sessionIds: string[]): Promise<DesktopLink[]> {
  if (sessionIds.length === 0) return [];
  const [rows] = await pool.query<RowDataPacket[]>(
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

/** One that is revoked already stays as it is. */
export async function revokeDesktopLink(database: Database, link: DesktopLink, actor: Actor): Promise<void> {
  await transaction(database, async (tx) => {
    const sql = 'UPDATE desktop_links SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL';
    const { affectedRows } = await execute(tx, sql, [new Date(), link.id]);
    if (affectedRows > 0) await appendAudit(tx, link.spaceId, actor, 'desktop-link.revoked', link.id);
  });
}

/** It is watched, and holds on. Returns until when. */
export async function renewDesktopLink({ pool }: Pick<Database, 'pool'>, link: DesktopLink): Promise<Date> {
  const until = new Date(Date.now() + link.ttlSeconds * 1_000);
  const sql = 'UPDATE desktop_links SET expires_at = ? WHERE id = ? AND expires_at IS NOT NULL AND expires_at < ?';
  await pool.query<ResultSetHeader>(sql, [until, link.id, until]);
  return until;
}

function linkOf(row: RowDataPacket): DesktopLink {
  return { ...(row as DesktopLink), control: (row as { control: unknown }).control === 1 };
}
