import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import type { Turn } from './turn.ts';

/** Hashes by which a repeated request of OpenAI's API, or one that continues a conversation, finds its turn. */
export interface CompletionHashes {
  /** The hash of the whole request. */
  request: Buffer;
  /** The hash of the conversation up to its last message. */
  conversation: Buffer;
}

type On = Pick<Database, 'pool'>;

/** How many answers to the same conversation are compared with the one that a client continues. */
const mostCandidates = 10;

export async function insertCompletion(
  tx: Transaction,
  { id, userId, spaceId, createdAt }: Turn,
  { request, conversation }: CompletionHashes,
): Promise<void> {
  await insert(tx, 'completion_requests', {
    turnId: id,
    userId,
    spaceId,
    requestHash: request,
    conversationHash: conversation,
    createdAt,
  });
}

/** Records that the client has received the whole answer: the same request then asks for another one. */
export async function noteDelivered({ pool }: On, turnId: string): Promise<void> {
  await execute(pool, 'UPDATE completion_requests SET delivered_at = ? WHERE turn_id = ? AND delivered_at IS NULL', [
    new Date(),
    turnId,
  ]);
}

/** The newest turn of the user since `since` that this request began and whose answer has not reached its client. */
export async function findUndelivered(
  { pool }: On,
  { userId, request, since }: { userId: string; request: Buffer; since: Date },
): Promise<string | undefined> {
  const sql = `SELECT turn_id FROM completion_requests
      WHERE user_id = ? AND request_hash = ? AND delivered_at IS NULL AND created_at > ?
      ORDER BY turn_id DESC LIMIT 1`;
  const rows = await select(pool, sql, [userId, request, since]);
  return rows[0]?.turnId as string | undefined;
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
