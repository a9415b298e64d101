import type { RowDataPacket } from 'mysql2/promise';
import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import type { Actor } from '../audit/audit.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { select } from '../database/sql.ts';
import { findLinkByToken, insertLink, type LinkKind, renewLinkToken, revokeLink } from '../links/links.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';

/** A link that lets anyone who has it read a thread. Its row is deleted when it is revoked. */
export interface ThreadShare {
  id: string;
  threadId: string;
  /** The API key that created the link; the link ends with it. */
  apiKeyId: string | null;
  /** The last turn that the link shows; null if it shows later ones as well. */
  upToOrdinal: number | null;
  /** Whether tool calls are shown, with their inputs and results. */
  toolCalls: boolean;
  /** Whether the names of attached files are shown. Their contents never are. */
  fileNames: boolean;
  createdAt: Date;
  expiresAt: Date | null;
}

export interface ShareChoice {
  toolCalls: boolean;
  fileNames: boolean;
  laterMessages: boolean;
  ttlSeconds: number | null;
}

const most = 50;

const threadShares: LinkKind = {
  table: 'thread_shares',
  opens: 'thread_id',
  most,
  tooMany: { code: 'TOO_MANY_SHARES', detail: `A thread has at most ${most} links. Revoke some.` },
  endedCode: 'SHARE_ENDED',
  audit: 'thread-share',
  isRemembered: false,
};

const columns = 'id, thread_id, api_key_id, up_to_ordinal, tool_calls, file_names, created_at, expires_at';

/**
 * Creates a link that has no token yet. Repeating the call with the same id returns the same link. It shows the turns
 * that have ended by now, and later ones if that was chosen. Throws 422 `TOO_MANY_SHARES`.
 */
export async function createShare(
  database: Database,
  { id, threadId, apiKeyId, choice }: { id: string; threadId: string; apiKeyId: string | null; choice: ShareChoice },
  actor: Actor,
): Promise<void> {
  await transaction(database, async (tx) => {
    // The lock of the thread's row keeps two requests from exceeding the limit together.
    const thread = await chatModels(tx).Thread.lock(threadId, tx);
    await requireLivingSpace(tx, thread.spaceId);
    const columns = {
      apiKeyId,
      upToOrdinal: choice.laterMessages ? null : await lastEnded(tx, thread),
      toolCalls: choice.toolCalls ? 1 : 0,
      fileNames: choice.fileNames ? 1 : 0,
    };
    const { ttlSeconds } = choice;
    await insertLink(tx, threadShares, { id, openedId: threadId, spaceId: thread.spaceId, ttlSeconds, columns }, actor);
  });
}

/** The ordinal of the turn before the running one. */
async function lastEnded(tx: Transaction, thread: Thread): Promise<number> {
  if (thread.activeTurnId === null) return thread.nextTurnOrdinal - 1;
  const active = await chatModels(tx).Turn.findByPk(thread.activeTurnId, { attributes: ['ordinal'], transaction: tx });
  return (active?.ordinal ?? thread.nextTurnOrdinal) - 1;
}

/** Gives a link a new token, and stores only its hash. The earlier token stops working. Throws 410 `SHARE_ENDED`. */
export function renewShareToken(database: Pick<Database, 'pool'>, id: string): Promise<string> {
  return renewLinkToken(database, threadShares, id);
}

/** A thread's links that have not expired, the newest first. */
export async function listShares(
  database: Pick<Database, 'pool'>,
  threadId: string,
  page: PageRequest,
): Promise<Page<ThreadShare>> {
  const sql = `SELECT ${columns} FROM thread_shares WHERE thread_id = ? AND (expires_at IS NULL OR expires_at > ?)`;
  return readPage(database, page, { sql, values: [threadId, new Date()], by: 'id', order: 'desc', read: shareOf });
}

/** Throws 404. */
export async function getShare({ pool }: Pick<Database, 'pool'>, id: string): Promise<ThreadShare> {
  const rows = await select(pool, `SELECT ${columns} FROM thread_shares WHERE id = ?`, [id]);
  if (rows[0] === undefined) throw notFound('link');
  return shareOf(rows[0]);
}

/** The link with this token, unless it has expired. Does not check whether its thread and owner still exist. */
export async function findShareByToken(
  database: Pick<Database, 'pool'>,
  token: string,
): Promise<ThreadShare | undefined> {
  const row = await findLinkByToken(database, threadShares, columns, token);
  return row && shareOf(row);
}

/** Revokes a link. Throws 404 if it belongs to another thread, or was revoked already. */
export async function revokeShare(
  database: Database,
  { id, thread }: { id: string; thread: Pick<Thread, 'id' | 'spaceId'> },
  actor: Actor,
): Promise<void> {
  const link = { id, openedId: thread.id, spaceId: thread.spaceId };
  if (!(await revokeLink(database, threadShares, link, actor))) throw notFound('link');
}

function shareOf(row: RowDataPacket): ThreadShare {
  return { ...(row as ThreadShare), toolCalls: row.toolCalls === 1, fileNames: row.fileNames === 1 };
}
