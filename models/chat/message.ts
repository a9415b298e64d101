import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { jsonText } from '../jsonText.ts';
import type { MessagePart } from '../turnLog/foldChunks.ts';

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

/** The same, found: which content of which item it was, and what that truly is. */
export interface AttachedFile extends FileReference {
  containerId: string;
  /** By its bytes, whatever the client has called it. */
  mimeType: string;
  fileName: string;
  itemId: string;
  version: number;
  /** In bytes. */
  size: number;
}

/** What a stored message is made of: the AI SDK's parts, and references to files. */
export type StoredPart = MessagePart | { type: 'data-file'; data: AttachedFile };

/** Where in its turn a message stands. A turn's place in the thread is its ordinal, so queued turns keep their order. */
export const userPosition = 0;
export const assistantPosition = 1;

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
    declare metadata: Record<string, unknown> | null;
    declare createdAt: Date;
    declare replacedAt: Date | null;

    /** A thread's messages after a place, oldest first. Answers that were regenerated are left out. */
    static async page(options: {
      threadId: string;
      after?: { turnOrdinal: number; position: number };
      upToOrdinal?: number;
      limit?: number;
    }): Promise<Message[]> {
      const { threadId, after, upToOrdinal, limit } = options;
      return Message.findAll({
        where: {
          threadId,
          replacedAt: null,
          ...(after && {
            [Op.or]: [
              { turnOrdinal: { [Op.gt]: after.turnOrdinal } },
              { turnOrdinal: after.turnOrdinal, position: { [Op.gt]: after.position } },
            ],
          }),
          ...(upToOrdinal !== undefined && { turnOrdinal: { [Op.lte]: upToOrdinal } }),
        },
        order: [
          ['turnOrdinal', 'ASC'],
          ['position', 'ASC'],
        ],
        limit,
      });
    }

    /** A thread's messages before a place, newest first, and only those of turns after `afterOrdinal`. */
    static async latest(options: {
      threadId: string;
      afterOrdinal: number;
      before: { turnOrdinal: number; position: number };
      limit: number;
    }): Promise<Message[]> {
      const { threadId, afterOrdinal, before, limit } = options;
      return Message.findAll({
        where: {
          threadId,
          replacedAt: null,
          turnOrdinal: { [Op.gt]: afterOrdinal },
          [Op.or]: [
            { turnOrdinal: { [Op.lt]: before.turnOrdinal } },
            { turnOrdinal: before.turnOrdinal, position: { [Op.lt]: before.position } },
          ],
        },
        order: [
          ['turnOrdinal', 'DESC'],
          ['position', 'DESC'],
        ],
        limit,
      });
    }

    static async find(threadId: string, id: string, tx?: Transaction): Promise<Message | null> {
      return Message.findOne({ where: { threadId, id }, transaction: tx });
    }
  }

  Message.init(
    {
      threadId: { type: DataTypes.STRING(40), primaryKey: true },
      turnOrdinal: { type: DataTypes.INTEGER.UNSIGNED, primaryKey: true },
      position: { type: DataTypes.INTEGER, primaryKey: true },
      id: DataTypes.STRING(200),
      turnId: DataTypes.STRING(40),
      role: DataTypes.STRING(10),
      parts: jsonText('parts'),
      metadata: jsonText('metadata'),
      createdAt: DataTypes.DATE(3),
      replacedAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'messages', timestamps: false, underscored: true },
  );
  return Message;
}
