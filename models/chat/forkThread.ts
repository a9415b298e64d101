import { createHash } from 'node:crypto';
import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { idBound } from '../../base/ids.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import type { On } from '../database/bound.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insertInstance, select } from '../database/sql.ts';
import type { MessagePlace } from './message.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';

/** How much one transaction copies: messages, and pieces of long answers of 128 KB each. */
const mostMessages = 10_000;
const mostPieces = 512;

export interface Fork {
  /** The copy's id. Repeating the call with the same id returns the same copy. */
  id: string;
  threadId: string;
  /** The last message to copy; without it, all turns that have ended are copied. */
  messageId?: string | undefined;
  title?: string | undefined;
}

/**
 * Copies a thread up to a message into a new thread of the same owner: the messages of ended turns, under new ids.
 * Their usage is not charged again; files stay where they are. Throws 404 for an unknown message, 409 `TURN_NOT_ENDED`,
 * 422 `THREAD_TOO_LONG`.
 */
export async function forkThread(database: Database, fork: Fork): Promise<Thread> {
  return transaction(
    database,
    async (tx) => {
      const { Thread } = chatModels(tx);
      const known = await Thread.findByPk(fork.id, { transaction: tx });
      if (known !== null) return known;
      // The lock keeps messages from being edited between the copies.
      const source = await Thread.lock(fork.threadId, tx);
      await requireLivingSpace(tx, source.spaceId);
      const end = await endOf(tx, source, fork.messageId);
      await refuseTooLong(tx, source.id, end);
      const { spaceId, userId } = source;
      const copy = Thread.prepare({ id: fork.id, spaceId, userId, title: fork.title ?? source.title });
      copy.set({ nextTurnOrdinal: end.turnOrdinal + 1, forkedFrom: source.id });
      await insertInstance(tx, copy);
      await copyRows(tx, { from: source.id, to: copy.id, end });
      return copy;
    },
    { retryDuplicates: true },
  );
}

/** The place of the last message to copy, which must belong to an ended turn. */
async function endOf(tx: Transaction, source: Thread, messageId: string | undefined): Promise<MessagePlace> {
  const { Message, Turn } = chatModels(tx);
  const { activeTurnId } = source;
  const active = activeTurnId === null ? null : await Turn.findByPk(activeTurnId, { transaction: tx });
  // Queued turns come after the running one.
  const firstUnended = active?.ordinal ?? source.nextTurnOrdinal;
  if (messageId === undefined) return { turnOrdinal: firstUnended - 1, position: 1 };
  const where = { threadId: source.id, id: messageId, replacedAt: null };
  const message = await Message.findOne({ where, attributes: ['turnOrdinal', 'position'], transaction: tx });
  if (message === null) throw notFound('message');
  if (message.turnOrdinal >= firstUnended) {
    throw new DomainError(
      'conflict',
      'TURN_NOT_ENDED',
      'The turn of this message has not ended. Try again when it has.',
    );
  }
  return { turnOrdinal: message.turnOrdinal, position: message.position };
}

const upTo =
  'm.thread_id = ? AND m.replaced_at IS NULL AND m.turn_ordinal <= ? AND (m.turn_ordinal < ? OR m.position <= ?)';

function upToValues(threadId: string, { turnOrdinal, position }: MessagePlace): (string | number)[] {
  return [threadId, turnOrdinal, turnOrdinal, position];
}

async function refuseTooLong(tx: Transaction, threadId: string, end: MessagePlace): Promise<void> {
  const [size] = await select<{ messages: number; pieces: number }>(
    tx,
    `SELECT COUNT(*) AS messages, CAST(COALESCE(SUM(m.pieces), 0) AS SIGNED) AS pieces FROM messages m WHERE ${upTo}`,
    upToValues(threadId, end),
  );
  if (size !== undefined && size.messages <= mostMessages && size.pieces <= mostPieces) return;
  throw new DomainError(
    'unprocessable',
    'THREAD_TOO_LONG',
    'The thread is too long to copy up to this message. Choose an earlier message.',
  );
}

/**
 * The id of a turn's copy is a hash of the new thread and the turn's id, in the form of a new id. So each statement can
 * compute it, and no row passes through this process.
 */
async function copyRows(
  tx: Transaction,
  { from, to, end }: { from: string; to: string; end: MessagePlace },
): Promise<void> {
  const newTurnId = (column: string) => `CONCAT(?, UPPER(LEFT(SHA2(CONCAT(?, ${column}), 256), 16)))`;
  const name = [idBound('turn', new Date()), createHash('sha256').update(to).digest('hex')];
  const place = upToValues(from, end);
  await execute(
    tx,
    `INSERT INTO turns (id, thread_id, space_id, user_id, ordinal, status, terminal, next_seq, writer_epoch,
        user_message_id, assistant_message_id, mode, model_id, effort, notification_priority, scopes, api_key_id,
        stop_requested_at, finish_reason, error_code, error_detail, created_at, started_at, ended_at, log_purged_at)
      SELECT ${newTurnId('t.id')}, ?, t.space_id, t.user_id, t.ordinal, t.status, 1, t.next_seq, t.writer_epoch,
        t.user_message_id, t.assistant_message_id, t.mode, t.model_id, t.effort, t.notification_priority, t.scopes,
        t.api_key_id, t.stop_requested_at, t.finish_reason, t.error_code, t.error_detail, t.created_at, t.started_at,
        t.ended_at, UTC_TIMESTAMP(3)
        FROM turns t
       WHERE t.thread_id = ? AND t.ordinal <= ? AND t.terminal = 1 AND EXISTS (SELECT 1 FROM messages m
         WHERE m.thread_id = t.thread_id AND m.turn_ordinal = t.ordinal AND m.replaced_at IS NULL)`,
    [...name, to, from, end.turnOrdinal],
  );
  await execute(
    tx,
    `INSERT INTO messages (thread_id, turn_ordinal, position, id, turn_id, role, parts, pieces, metadata, created_at)
      SELECT ?, m.turn_ordinal, m.position, m.id, ${newTurnId('m.turn_id')}, m.role, m.parts, m.pieces,
        REPLACE(REPLACE(m.metadata, m.thread_id, ?), m.turn_id, ${newTurnId('m.turn_id')}), m.created_at
        FROM messages m WHERE ${upTo}`,
    [to, ...name, to, ...name, ...place],
  );
  await execute(
    tx,
    `INSERT INTO answer_pieces (turn_id, piece, parts) SELECT ${newTurnId('p.turn_id')}, p.piece, p.parts
       FROM messages m JOIN answer_pieces p ON p.turn_id = m.turn_id WHERE ${upTo} AND m.pieces > 0`,
    [...name, ...place],
  );
  await execute(
    tx,
    `INSERT INTO turn_contexts (turn_id, context) SELECT ${newTurnId('c.turn_id')}, c.context
       FROM messages m JOIN turn_contexts c ON c.turn_id = m.turn_id WHERE ${upTo} AND m.position = 0`,
    [...name, ...place],
  );
  await execute(
    tx,
    `INSERT INTO thread_summaries (thread_id, up_to_ordinal, turn_id, model_id, summary, created_at)
      SELECT ?, up_to_ordinal, ${newTurnId('turn_id')}, model_id, summary, created_at
        FROM thread_summaries WHERE thread_id = ? AND up_to_ordinal < ?`,
    [to, ...name, from, end.turnOrdinal],
  );
}

/** How far back copies of copies are followed. */
const mostOrigins = 10;

/** A thread, and the threads that it was copied from, as far as they exist. All belong to one user in one space. */
export async function* originsOf(on: On, threadId: string): AsyncGenerator<string> {
  const { Thread } = chatModels(on);
  let id = threadId;
  for (let count = 0; count < mostOrigins; count++) {
    const thread = await Thread.open(id);
    if (thread === null) return;
    yield id;
    if (thread.forkedFrom === null) return;
    id = thread.forkedFrom;
  }
}
