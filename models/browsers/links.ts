import { notFound } from '../../base/errors.ts';
import type { Actor } from '../audit/audit.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { findLinkByToken, insertLink, type LinkKind, linkEnded, renewLinkToken, revokeLink } from '../links/links.ts';
import { type BrowserRef, getBrowser } from './session.ts';

/** A link with which scripts attach to a browser. Revoking it deletes its row. */
export interface BrowserLink {
  id: string;
  spaceId: string;
  sessionId: string;
  /** The link ends when its maker may no longer use browsers, or when the maker's API key or sign-in ends. */
  createdBy: string;
  apiKeyId: string | null;
  loginSessionId: string | null;
  createdAt: Date;
  expiresAt: Date;
}

const most = 100;

const browserLinks: LinkKind = {
  table: 'browser_links',
  opens: 'session_id',
  most,
  tooMany: { code: 'TOO_MANY_BROWSER_LINKS', detail: `A browser session has at most ${most} links. Revoke some.` },
  endedCode: 'BROWSER_LINK_ENDED',
  audit: 'browser-link',
  isRemembered: false,
};

const columns = 'id, space_id, session_id, created_by, api_key_id, login_session_id, created_at, expires_at';

type NewLink = Pick<BrowserLink, 'id' | 'spaceId' | 'sessionId' | 'createdBy' | 'apiKeyId' | 'loginSessionId'> & {
  ttlSeconds: number;
};

/** Makes a link without a token. The same id again is the same link. Throws 422 `TOO_MANY_BROWSER_LINKS`. */
export async function createBrowserLink(database: Database, fields: NewLink, actor: Actor): Promise<void> {
  const { id, spaceId, sessionId, createdBy, apiKeyId, loginSessionId, ttlSeconds } = fields;
  const columns = {
    spaceId,
    createdBy,
    apiKeyId,
    loginSessionId,
  };
  await transaction(database, async (tx) => {
    await requireLivingSpace(tx, spaceId);
    // The lock on the session’s row keeps two requests from passing the limit together.
    await select(tx, 'SELECT id FROM browser_sessions WHERE id = ? FOR UPDATE', [sessionId]);
    await insertLink(tx, browserLinks, { id, openedId: sessionId, spaceId, ttlSeconds, columns }, actor);
  });
}

/** Gives a link a new token, and stores only its hash. An earlier token ends. Throws 410 `BROWSER_LINK_ENDED`. */
export async function renewBrowserToken(
  database: Pick<Database, 'pool'>,
  id: string,
): Promise<{ link: BrowserLink; token: string }> {
  const token = await renewLinkToken(database, browserLinks, id);
  const link = await findBrowserLink(database, token);
  if (link === undefined) throw linkEnded(browserLinks);
  return { link, token };
}

/** A session’s valid links, newest first. */
export async function listBrowserLinks({ pool }: Pick<Database, 'pool'>, sessionId: string): Promise<BrowserLink[]> {
  const sql = `SELECT ${columns} FROM browser_links WHERE session_id = ? AND expires_at > ? ORDER BY id DESC LIMIT ?`;
  return select<BrowserLink>(pool, sql, [sessionId, new Date(), most]);
}

/** The link with this token, unless it has expired or was revoked. It does not check what its maker may do. */
export async function findBrowserLink(
  database: Pick<Database, 'pool'>,
  token: string,
): Promise<BrowserLink | undefined> {
  return (await findLinkByToken(database, browserLinks, columns, token)) as BrowserLink | undefined;
}

/** Throws 404 for a link of another session, and for a revoked one. */
export async function revokeBrowserLink(
  database: Database,
  { spaceId, sessionId, linkId }: BrowserRef & { linkId: string },
  actor: Actor,
): Promise<void> {
  await getBrowser(database, { spaceId, sessionId });
  const link = { id: linkId, openedId: sessionId, spaceId };
  if (!(await revokeLink(database, browserLinks, link, actor))) throw notFound('link');
}
