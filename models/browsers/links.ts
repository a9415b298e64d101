import type { RowDataPacket } from 'mysql2/promise';
import { DomainError, notFound } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { hashLinkToken, newLinkToken } from '../identity/linkTokens.ts';
import type { BrowserRef } from './session.ts';

/** A way for scripts to attach to a browser. Its row goes when it is revoked. */
export interface BrowserLink {
  id: string;
  spaceId: string;
  sessionId: string;
  /** It holds no longer than they may do this, and the key or the sign-in that it was made with. */
  createdBy: string;
  apiKeyId: string | null;
  /** The sign-in in which it was made: it ends with that. */
  loginSessionId: string | null;
  createdAt: Date;
  expiresAt: Date;
}

const mostLinks = 100;

const columns = `id, space_id AS spaceId, session_id AS sessionId, created_by AS createdBy, api_key_id AS apiKeyId,
  login_session_id AS loginSessionId, created_at AS createdAt, expires_at AS expiresAt`;

type NewLink = Pick<BrowserLink, 'id' | 'spaceId' | 'sessionId' | 'createdBy' | 'apiKeyId' | 'loginSessionId'> & {
  ttlSeconds: number;
};

/** Makes a link, still without a token; the same id again is the same link. Throws 422 `TOO_MANY_BROWSER_LINKS`. */
export async function createBrowserLink(database: Database, fields: NewLink, actor: Actor): Promise<void> {
  const { id, spaceId, sessionId, createdBy, apiKeyId, loginSessionId, ttlSeconds } = fields;
  const now = new Date();
  await transaction(database, async (tx) => {
    await requireLivingSpace(tx, spaceId);
    // The session’s row keeps two requests from counting past the limit together.
    await select(tx, 'SELECT id FROM browser_sessions WHERE id = ? FOR UPDATE', [sessionId]);
    await execute(tx, 'DELETE FROM browser_links WHERE session_id = ? AND expires_at <= ?', [sessionId, now]);
    const known = await select<{ id: string }>(tx, 'SELECT id FROM browser_links WHERE session_id = ?', [sessionId]);
    if (known.some((link) => link.id === id)) return;
    if (known.length >= mostLinks) {
      const detail = `A browser session has at most ${mostLinks} links. Revoke some.`;
      throw new DomainError('unprocessable', 'TOO_MANY_BROWSER_LINKS', detail);
    }
    await insert(tx, 'browser_links', {
      id,
      space_id: spaceId,
      session_id: sessionId,
      created_by: createdBy,
      api_key_id: apiKeyId,
      login_session_id: loginSessionId,
      created_at: now,
      expires_at: new Date(now.getTime() + ttlSeconds * 1_000),
    });
    await appendAudit(tx, spaceId, actor, 'browser-link.created', id);
  });
}

/**
 * Gives a link a new token, of which only the hash is kept: one that it had before ends. Throws 410
 * `BROWSER_LINK_ENDED`.
 */
export async function renewBrowserToken(
  { pool }: Pick<Database, 'pool'>,
  id: string,
): Promise<{ link: BrowserLink; token: string }> {
  const token = newLinkToken();
  const now = new Date();
  await pool.query('UPDATE browser_links SET token_hash = ? WHERE id = ?', [hashLinkToken(token), id]);
  const [rows] = await pool.query<RowDataPacket[]>(`SELECT ${columns} FROM browser_links WHERE id = ?`, [id]);
  const link = rows[0] as BrowserLink | undefined;
  if (link === undefined || link.expiresAt <= now) {
    throw new DomainError('gone', 'BROWSER_LINK_ENDED', 'This link has expired or was revoked.');
  }
  return { link, token };
}

/** A session’s links that hold, newest first. */
export async function listBrowserLinks({ pool }: Pick<Database, 'pool'>, sessionId: string): Promise<BrowserLink[]> {
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT ${columns} FROM browser_links WHERE session_id = ? AND expires_at > ? ORDER BY id DESC LIMIT ?`,
    [sessionId, new Date(), mostLinks],
  );
  return rows as unknown as BrowserLink[];
}

/** The link with this token, unless it has expired or was revoked. Whether its maker may still do this is not looked at. */
export async function findBrowserLink(
  { pool }: Pick<Database, 'pool'>,
  token: string,
): Promise<BrowserLink | undefined> {
  const [rows] = await pool.query<RowDataPacket[]>(`SELECT ${columns} FROM browser_links WHERE token_hash = ?`, [
    hashLinkToken(token),
  ]);
  const link = rows[0] as BrowserLink | undefined;
  return link !== undefined && link.expiresAt.getTime() > Date.now() ? link : undefined;
}

/** Throws 404 for a link of another session, and for one that was revoked already. */
export async function revokeBrowserLink(
  database: Database,
  { spaceId, sessionId, linkId }: BrowserRef & { linkId: string },
  actor: Actor,
): Promise<void> {
  await transaction(database, async (tx) => {
    const sql = 'DELETE FROM browser_links WHERE id = ? AND session_id = ? AND space_id = ?';
    if ((await execute(tx, sql, [linkId, sessionId, spaceId])).affectedRows === 0) throw notFound('link');
    await appendAudit(tx, spaceId, actor, 'browser-link.revoked', linkId);
  });
}
