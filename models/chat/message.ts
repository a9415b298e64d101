import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { jsonText } from '../../base/text.ts';
import type { Database } from '../database/database.ts';
import { behind, type Order } from '../database/pages.ts';
import { instanceOf, select } from '../database/sql.ts';
import { piecesAtOnce, readPieces } from './answerPieces.ts';
import type { MessagePart } from './turnLog/foldChunks.ts';

/** A file that the user attached, by reference: the bytes stay where they are. */
export interface FileReference {
  path: string;
  fileType?: 'image' | 'pdf' | 'text' | 'code' | 'binary';
  mimeType?: string;
  fileName?: string;
  containerId?: string;
  width?: number;
  height?: number;
}

/** The same reference, resolved to the drive item, its content and the content's actual type. */
export interface AttachedFile extends FileReference {
  containerId: string;
  /** Detected from the bytes, not taken from the client. */
  mimeType: string;
  fileName: string;
  itemId: string;
  version: number;
  /** In bytes. */
  size: number;
  /** It was sent within the message. A turn whose key may not read the drive sees it all the same. */
  isSent?: true;
}

/** The parts of a stored message: the AI SDK's parts, and references to files. */
export type StoredPart = MessagePart | { type: 'data-file'; data: AttachedFile };

/**
 * A message's position within its turn. A turn's place in the thread is its ordinal, so queued turns keep their order.
 */
export const userPosition = 0;
export const assistantPosition = 1;

/** Where a message stands in its thread. */
export interface MessagePlace {
  turnOrdinal: number;
  position: number;
}

export interface MessagePage {
  messages: Message[];
  /** Whether more messages follow. A page may end before its limit if its answers are long. */
  hasMore: boolean;
}

/** A page holds at least one turn: a user's message and its answer. */
const leastPerPage = 2;

export type Message = InstanceType<ReturnType<typeof defineMessage>>;

export function defineMessage(sequelize: Sequelize) {
  class Message extends Model {
    declare threadId: string;
    declare turnOrdinal: number;
    declare position: number;
    declare id: string;
    declare turnId: string;
    declare role: 'user' | 'assistant';
    declare parts: StoredPart[];
    /** How many rows of `answer_pieces` hold the parts; 0 if this row holds them. */
    declare pieces: number;
    /** The parts from those rows, once they are read. */
    declare wholeParts: StoredPart[] | undefined;
    declare metadata: Record<string, unknown> | null;
    declare createdAt: Date;
    declare replacedAt: Date | null;
    /** 1 until the words of the current text are indexed. */
    declare wordsDue: number;

    /** A thread's messages after a place, in this order. Regenerated answers are left out. */
    static async page(options: {
      threadId: string;
      order?: Order;
      after?: MessagePlace;
      upToOrdinal?: number;
      limit: number;
    }): Promise<MessagePage> {
      const { threadId, order = 'asc', after, upToOrdinal, limit } = options;
      const messages = await Message.findAll({
        where: {
          threadId,
          replacedAt: null,
          ...(after &&
            behind(order, [
              ['turnOrdinal', after.turnOrdinal],
              ['position', after.position],
            ])),
          ...(upToOrdinal !== undefined && { turnOrdinal: { [Op.lte]: upToOrdinal } }),
        },
        order: [
          ['turnOrdinal', order],
          ['position', order],
        ],
        limit: limit + 1,
      });
      return Message.#readWhole(messages, limit);
    }

    /** A thread's messages before a place, newest first, limited to turns after `afterOrdinal`. */
    static async latest(
      { pool }: Pick<Database, 'pool'>,
      options: { threadId: string; afterOrdinal: number; before: MessagePlace; limit: number },
    ): Promise<MessagePage> {
      const { threadId, afterOrdinal, before, limit } = options;
      const { turnOrdinal, position } = before;
      const sql = `SELECT * FROM messages
          WHERE thread_id = ? AND replaced_at IS NULL AND turn_ordinal > ?
            AND turn_ordinal <= ? AND (turn_ordinal < ? OR position < ?)
          ORDER BY turn_ordinal DESC, position DESC LIMIT ?`;
      const rows = await select(pool, sql, [threadId, afterOrdinal, turnOrdinal, turnOrdinal, position, limit + 1]);
      const messages = rows.map((row) => instanceOf(Message, row));
      return Message.#readWhole(messages, limit);
    }

    /**
     * Reads the pieces of as many rows as may be in memory at once. `rows` has one row more than `limit` if more
     * follow.
     */
    static async #readWhole(rows: Message[], limit: number): Promise<MessagePage> {
      let pieces = 0;
      const excess = rows.findIndex((row, at) => {
        pieces += row.pieces;
        return at >= leastPerPage && pieces > piecesAtOnce;
      });
      const messages = rows.slice(0, Math.min(limit, excess < 0 ? rows.length : excess));
      for (const message of messages) await message.readWhole();
      return { messages, hasMore: messages.length < rows.length };
    }

    static async find(threadId: string, id: string, tx?: Transaction): Promise<Message | null> {
      const message = await Message.findOne({ where: { threadId, id }, transaction: tx });
      await message?.readWhole(tx);
      return message;
    }

    async readWhole(tx?: Transaction): Promise<void> {
      if (this.pieces > 0) this.wholeParts = await readPieces({ sequelize }, this.turnId, tx);
    }
  }

  const partsText = jsonText('parts');
  Message.init(
    {
      threadId: { type: DataTypes.STRING(40), primaryKey: true },
      turnOrdinal: { type: DataTypes.INTEGER.UNSIGNED, primaryKey: true },
      position: { type: DataTypes.INTEGER, primaryKey: true },
      id: DataTypes.STRING(200),
      turnId: DataTypes.STRING(40),
      role: DataTypes.STRING(10),
      parts: {
        ...partsText,
        get(this: Message) {
          return this.wholeParts ?? partsText.get.call(this);
        },
      },
      pieces: { type: DataTypes.INTEGER.UNSIGNED, defaultValue: 0 },
      metadata: jsonText('metadata'),
      createdAt: DataTypes.DATE(3),
      replacedAt: DataTypes.DATE(3),
      wordsDue: DataTypes.INTEGER.UNSIGNED,
    },
    { sequelize, tableName: 'messages', timestamps: false, underscored: true },
  );
  return Message;
}
