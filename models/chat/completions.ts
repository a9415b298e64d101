import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import type { Attendance } from './attendance.ts';
import type { Turn } from './turn.ts';

/** What is kept of a request of OpenAI's API, so that the same one, or one that continues it, finds its turn. */
export interface CompletionRecord {
  /** The hash of the whole request. */
  request: Buffer;
  /** The hash of the conversation up to its last message. */
  conversation: Buffer;
  /** The connection that waits for the answer; absent if the client comes back for it whenever it likes. */
  attendance?: Attendance | undefined;
}

type On = Pick<Database, 'pool'>;

/** How many answers to the same conversation are compared with the one that a client continues. */
const mostCandidates = 10;

export async function insertCompletion(
  tx: Transaction,
  { id, userId, spaceId, createdAt }: Turn,
  { request, conversation, attendance }: CompletionRecord,
): Promise<void> {
  await insert(tx, 'completion_requests', {
    turnId: id,
    userId,
    spaceId,
    requestHash: request,
    conversationHash: conversation,
    createdAt,
    attending: 1,
    attendedUntil: attendance?.until ?? null,
  });
}

/** Records that the client has received the whole answer: the same request then asks for another one. */
export async function noteDelivered({ pool }: On, turnId: string): Promise<void> {
  await execute(pool, 'UPDATE completion_requests SET delivered_at = ? WHERE turn_id = ? AND delivered_at IS NULL', [
    new Date(),
    turnId,
  ]);
}

/**
 * The newest turn of the user since `since` that this request began and whose answer has not reached its client. A turn
 * that was stopped has none.
 */
export async function findUndelivered(
  { pool }: On,
  { userId, request, since }: { userId: string; request: Buffer; since: Date },
): Promise<string | undefined> {
  const sql = `SELECT c.turn_id FROM completion_requests c JOIN turns t ON t.id = c.turn_id
      WHERE c.user_id = ? AND c.request_hash = ? AND c.delivered_at IS NULL AND c.created_at > ?
        AND t.stop_requested_at IS NULL
      ORDER BY c.turn_id DESC LIMIT 1`;
  const rows = await select(pool, sql, [userId, request, since]);
  return rows[0]?.turnId as string | undefined;
}

/**
 * Whether the turn answers a request of OpenAI's API. Such a turn ends with the calls that its client has to run, and
 * the request that brings their results begins the next one.
 */
export async function isCompletion(tx: Transaction, turnId: string): Promise<boolean> {
  const rows = await select(tx, 'SELECT turn_id FROM completion_requests WHERE turn_id = ?', [turnId]);
  return rows.length > 0;
}

/** The hash of the conversation that the turn answered; undefined if it is not a turn of OpenAI's API. */
export async function conversationOf({ pool }: On, turnId: string): Promise<Buffer | undefined> {
  const rows = await select(pool, 'SELECT conversation_hash FROM completion_requests WHERE turn_id = ?', [turnId]);
  return rows[0]?.conversationHash as Buffer | undefined;
}

/** A thread whose last turn answered a given conversation. */
export interface AnsweredThread {
  threadId: string;
  ordinal: number;
  assistantMessageId: string;
}

/** The user's kept threads that end with an answer to exactly this conversation, the newest first. */
export async function findAnswered(
  { pool }: On,
  { userId, spaceId, conversation }: { userId: string; spaceId: string; conversation: Buffer },
): Promise<AnsweredThread[]> {
  const sql = `SELECT t.thread_id, t.ordinal, t.assistant_message_id
       FROM completion_requests c
       JOIN turns t ON t.id = c.turn_id
       JOIN threads h ON h.id = t.thread_id
      WHERE c.user_id = ? AND c.space_id = ? AND c.conversation_hash = ? AND t.terminal = 1
        AND h.deleted_at IS NULL AND h.expires_at IS NULL AND h.active_turn_id IS NULL
        AND h.next_turn_ordinal = t.ordinal + 1
      ORDER BY c.turn_id DESC LIMIT ?`;
  return select<AnsweredThread>(pool, sql, [userId, spaceId, conversation, mostCandidates]);
}
