import type { RowDataPacket } from 'mysql2/promise';
import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import type { Actor } from '../audit/audit.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { findLinkByToken, insertLink, type LinkKind, renewLinkToken, revokeLink } from '../links/links.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';

/** A link by which anybody reads a thread who has it. Its row goes when it is revoked. */
export interface ThreadShare {
  id: string;
  threadId: string;
  /** The key that it was made with, and ends with. */
  apiKeyId: string | null;
  /** The last turn that is shown; null where later ones are, too. */
  upToOrdinal: number | null;
  /** Whether tool calls are shown, with what went in and came out. */
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

const columns = `id, thread_id AS threadId, api_key_id AS apiKeyId, up_to_ordinal AS upToOrdinal,
  tool_calls AS toolCalls, file_names AS fileNames, created_at AS createdAt, expires_at AS expiresAt`;

/**
 * Makes a link, still without a token; the same id again is the same link. It shows turns that have ended by now, and
 * later ones if that was chosen. Throws 422 `TOO_MANY_SHARES`.
 */
export async function createShare(
  database: Database,
  { id, threadId, apiKeyId, choice }: { id: string; threadId: string; apiKeyId: string | null; choice: ShareChoice },
  actor: Actor,
): Promise<void> {
  await transaction(database, async (tx) => {
    const thread = await chatModels(tx).Thread.lock(threadId, tx);
    await requireLivingSpace(tx, thread.spaceId);
    const columns = {
      api_key_id: apiKeyId,
      up_to_ordinal: choice.laterMessages ? null : await lastEnded(tx, thread),
      tool_calls: choice.toolCalls ? 1 : 0,
      file_names: choice.fileNames ? 1 : 0,
    };
    const { ttlSeconds } = choice;
    await insertLink(tx, threadShares, { id, openedId: threadId, spaceId: thread.spaceId, ttlSeconds, columns }, actor);
  });
}

/** The ordinal of the turn before the one that is under way. */
async function lastEnded(tx: Transaction, thread: Thread): Promise<number> {
  if (thread.activeTurnId === null) return thread.nextTurnOrdinal - 1;
  const active = await chatModels(tx).Turn.findByPk(thread.activeTurnId, { attributes: ['ordinal'], transaction: tx });
  return (active?.ordinal ?? thread.nextTurnOrdinal) - 1;
}

/** Gives a link another token; its earlier one stops working. Throws 410 `SHARE_ENDED`. */
export function renewShareToken(database: Pick<Database, 'pool'>, id: string): Promise<string> {
  return renewLinkToken(database, threadShares, id);
}

/** The links to a thread that have not expired, newest first. */
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
  const [rows] = await pool.query<RowDataPacket[]>(`SELECT ${columns} FROM thread_shares WHERE id = ?`, [id]);
  if (rows[0] === undefined) throw notFound('link');
  return shareOf(rows[0]);
}

/** The link with this token, unless it has expired. Whether its thread and owner are still there is not looked at. */
export async function findShareByToken(
  database: Pick<Database, 'pool'>,
  token: string,
): Promise<ThreadShare | undefined> {
  const row = await findLinkByToken(database, threadShares, columns, token);
  return row && shareOf(row);
}

/** Throws 404 for a link of another thread, and for one that was revoked already. */
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
