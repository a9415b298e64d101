import { DataTypes, literal, Model, Op, type Sequelize, type Transaction, UniqueConstraintError } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { along, behind, behindSql, type Order } from '../database/pages.ts';
import { instanceOf, select } from '../database/sql.ts';
import { hasEndpoints } from '../webhooks/events.ts';

/** A conversation. It belongs to one user in one space, and at most one of its turns runs. */
export type Thread = InstanceType<ReturnType<typeof defineThread>>;

export function defineThread(sequelize: Sequelize) {
  class Thread extends Model {
    declare id: string;
    declare spaceId: string;
    declare userId: string;
    declare title: string | null;
    declare activeTurnId: string | null;
    declare nextTurnOrdinal: number;
    declare createdAt: Date;
    declare updatedAt: Date;
    declare deletedAt: Date | null;
    /** The end of a temporary thread, which no list shows; null for a thread that is kept. */
    declare expiresAt: Date | null;
    /** The thread that it was copied from. */
    declare forkedFrom: string | null;
    /** 1 until the words of the current title are indexed. */
    declare wordsDue: number;

    static async open(id: string, tx?: Transaction): Promise<Thread | null> {
      return Thread.findOne({ where: { id, deletedAt: null }, transaction: tx });
    }

    /**
     * Creates a thread. Repeating the call with the same id returns the same thread, even while the first call is still
     * committing.
     */
    static async make(fields: { id: string; spaceId: string; userId: string; title: string | null }): Promise<Thread> {
      const known = await Thread.findByPk(fields.id);
      if (known !== null) return known;
      try {
        return await sequelize.transaction(async (tx) => {
          await requireLivingSpace(tx, fields.spaceId);
          return Thread.prepare(fields).save({ transaction: tx });
        });
      } catch (error) {
        if (!(error instanceof UniqueConstraintError)) throw error;
        return Thread.findByPk(fields.id, { rejectOnEmpty: true });
      }
    }

    /** Locks the thread's row, which is required to change the active turn. */
    static async lock(id: string, tx: Transaction): Promise<Thread> {
      const thread = await Thread.findOne({ where: { id, deletedAt: null }, transaction: tx, lock: tx.LOCK.UPDATE });
      if (thread === null) throw notFound('thread');
      return thread;
    }

    /** Locks the thread of a turn, deleted or not, and reads whether its space has webhook endpoints that listen. */
    static async lockOfTurn(turnId: string, tx: Transaction): Promise<{ thread: Thread | null; isHeard: boolean }> {
      const [row] = await select<{ isHeard: number }>(
        tx,
        `SELECT threads.*, ${hasEndpoints('threads.space_id')} AS isHeard
           FROM threads WHERE id = (SELECT thread_id FROM turns WHERE id = ?) FOR UPDATE`,
        [turnId],
      );
      // Without a thread, assume that an endpoint listens.
      if (row === undefined) return { thread: null, isHeard: true };
      const { isHeard, ...thread } = row;
      return { thread: instanceOf(Thread, thread), isHeard: isHeard === 1 };
    }

    /** A new thread that is not stored yet. */
    static prepare(fields: {
      spaceId: string;
      userId: string;
      title?: string | null;
      id?: string;
      expiresAt?: Date | null;
    }): Thread {
      const now = new Date();
      return Thread.build({
        id: fields.id ?? newId('thread'),
        spaceId: fields.spaceId,
        userId: fields.userId,
        title: fields.title ?? null,
        activeTurnId: null,
        nextTurnOrdinal: 1,
        createdAt: now,
        updatedAt: now,
        deletedAt: null,
        expiresAt: fields.expiresAt ?? null,
        wordsDue: fields.title == null ? 0 : 1,
        forkedFrom: null,
      });
    }

    /** The owner's threads of a space, ordered by their last use. `cursor` is the last row's `updatedAt,id`. */
    static async page(options: {
      spaceId: string;
      userId: string;
      order?: Order;
      limit: number;
      cursor?: { updatedAt: Date; id: string };
      /** True for threads whose turn waits for its client, false for all others. */
      needsInput?: boolean | undefined;
    }): Promise<Thread[]> {
      const { spaceId, userId, order = 'desc', limit, cursor, needsInput } = options;
      if (needsInput === true) return Thread.waitingPage(options);
      const waiting = literal("(SELECT id FROM turns WHERE turns.id = active_turn_id AND turns.status = 'waiting')");
      const after =
        cursor &&
        behind(order, [
          ['updatedAt', cursor.updatedAt],
          ['id', cursor.id],
        ]);
      return Thread.findAll({
        where: {
          spaceId,
          userId,
          deletedAt: null,
          expiresAt: null,
          ...after,
          ...(needsInput === false && { [Op.not]: { activeTurnId: { [Op.in]: waiting } } }),
        },
        ...along('threads_space_user'),
        order: [
          ['updatedAt', order],
          ['id', order],
        ],
        limit,
      });
    }

    /** Starts from the space's few running turns, since most threads wait for nothing. */
    private static async waitingPage(options: {
      spaceId: string;
      userId: string;
      order?: Order;
      limit: number;
      cursor?: { updatedAt: Date; id: string };
    }): Promise<Thread[]> {
      const { spaceId, userId, order = 'desc', limit, cursor } = options;
      const next = behindSql(
        order,
        cursor && [
          ['threads.updated_at', cursor.updatedAt],
          ['threads.id', cursor.id],
        ],
      );
      return sequelize.query(
        `SELECT STRAIGHT_JOIN threads.* FROM turns JOIN threads ON threads.id = turns.thread_id
          WHERE turns.space_id = ? AND turns.terminal = 0 AND turns.status = 'waiting' AND turns.user_id = ?
            AND threads.active_turn_id = turns.id AND threads.deleted_at IS NULL ${next.sql}
          ORDER BY threads.updated_at ${order}, threads.id ${order} LIMIT ?`,
        { replacements: [spaceId, userId, ...next.values, limit], model: Thread, mapToModel: true },
      );
    }

    async rename(title: string): Promise<void> {
      await this.update({ title, wordsDue: 1 });
    }

    /** Names a thread, unless it has a name. */
    static async nameOnce(id: string, title: string, tx: Transaction): Promise<void> {
      await Thread.update({ title, wordsDue: 1 }, { where: { id, title: null, deletedAt: null }, transaction: tx });
    }

    /** Takes the thread's next ordinal for a turn. The caller holds the row's lock and saves the row. */
    takeOrdinal(): number {
      const ordinal = this.nextTurnOrdinal;
      this.nextTurnOrdinal = ordinal + 1;
      return ordinal;
    }
  }

  Thread.init(
    {
      id: { type: DataTypes.STRING(40), primaryKey: true },
      spaceId: DataTypes.STRING(40),
      userId: DataTypes.STRING(40),
      title: DataTypes.STRING(300),
      activeTurnId: DataTypes.STRING(40),
      nextTurnOrdinal: DataTypes.INTEGER.UNSIGNED,
      createdAt: DataTypes.DATE(3),
      updatedAt: DataTypes.DATE(3),
      deletedAt: DataTypes.DATE(3),
      expiresAt: DataTypes.DATE(3),
      wordsDue: DataTypes.INTEGER.UNSIGNED,
      forkedFrom: DataTypes.STRING(40),
    },
    { sequelize, tableName: 'threads', timestamps: false, underscored: true },
  );
  return Thread;
}

/** A client's own chat id, by which the same user finds the thread again. */
export type ThreadAlias = InstanceType<ReturnType<typeof defineThreadAlias>>;

export function defineThreadAlias(sequelize: Sequelize) {
  class ThreadAlias extends Model {
    declare userId: string;
    declare spaceId: string;
    declare alias: string;
    declare threadId: string;
  }

  ThreadAlias.init(
    {
      userId: { type: DataTypes.STRING(40), primaryKey: true },
      spaceId: { type: DataTypes.STRING(40), primaryKey: true },
      alias: { type: DataTypes.STRING(200), primaryKey: true },
      threadId: DataTypes.STRING(40),
    },
    { sequelize, tableName: 'thread_aliases', timestamps: false, underscored: true },
  );
  return ThreadAlias;
}
