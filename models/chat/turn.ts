import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { jsonText } from '../../base/text.ts';
import { behind, type Order } from '../database/pages.ts';
import { instanceOf, select } from '../database/sql.ts';
import type { FinishReason, TurnStatus, UiChunk } from './turnLog/chunks.ts';
import { nextSeqOf } from './turnLog/tails.ts';

export type NotificationPriority = 'low' | 'default' | 'high';
export type TurnMode = 'ask' | 'work';

/**
 * A turn: one answer of the assistant to one message of the user (see activities/chat/runStep.ts). Its row is the fence
 * of its log: a writer locks it and compares `writerEpoch` and `terminal` before it appends.
 */
export type Turn = InstanceType<ReturnType<typeof defineTurn>>;

export function defineTurn(sequelize: Sequelize) {
  class Turn extends Model {
    declare id: string;
    declare threadId: string;
    declare spaceId: string;
    declare userId: string;
    declare ordinal: number;
    declare status: TurnStatus;
    declare terminal: number;
    /**
     * The next number of its log when its state last changed: exact while the turn waits and after its end. `lock` sets
     * it to the current number.
     */
    declare nextSeq: number;
    declare writerEpoch: number;
    declare outboxItemId: string | null;
    declare outboxHash: Buffer | null;
    declare userMessageId: string;
    declare assistantMessageId: string;
    declare mode: TurnMode;
    declare modelId: string;
    declare effort: string | null;
    declare notificationPriority: NotificationPriority;
    /** The scopes and the key of the credential that asked for the turn: see models/identity/authority.ts. */
    declare scopes: readonly string[] | null;
    declare apiKeyId: string | null;
    declare stopRequestedAt: Date | null;
    declare finishReason: FinishReason | null;
    declare errorCode: string | null;
    declare errorDetail: string | null;
    declare createdAt: Date;
    declare startedAt: Date | null;
    declare endedAt: Date | null;
    declare logPurgedAt: Date | null;
    /** The device context that the client sent, if this process has it in memory. Not a column. */
    declare context?: Record<string, unknown> | null;

    /**
     * Locks the turn's row, so that no other transaction appends to its log. If the thread is needed too, lock it
     * first, so that two callers cannot deadlock.
     */
    static async lock(id: string, tx: Transaction): Promise<Turn | null> {
      const turn = await Turn.lockRow(id, tx);
      // An ended turn's log may be purged.
      if (turn !== null && !turn.isTerminal) turn.set('nextSeq', await nextSeqOf(tx, id), { raw: true });
      return turn;
    }

    /** Locks the row without looking at the log: `nextSeq` is the row's own. */
    static async lockRow(id: string, tx: Transaction): Promise<Turn | null> {
      const [row] = await select(tx, 'SELECT * FROM turns WHERE id = ? FOR UPDATE', [id]);
      return row === undefined ? null : instanceOf(Turn, row);
    }

    static async byOutboxItem(userId: string, outboxItemId: string, tx?: Transaction): Promise<Turn | null> {
      return Turn.findOne({ where: { userId, outboxItemId }, transaction: tx });
    }

    /**
     * A thread's oldest queued turn. Queued turns come after the active one, so only those are searched: a thread of
     * thousands of turns costs no more than a new one.
     */
    static async nextQueued(threadId: string, afterOrdinal: number, tx: Transaction): Promise<Turn | null> {
      return Turn.findOne({
        where: { threadId, status: 'queued', ordinal: { [Op.gt]: afterOrdinal } },
        order: [['ordinal', 'ASC']],
        transaction: tx,
        lock: tx.LOCK.UPDATE,
      });
    }

    /** The number of turns queued behind the active turn. */
    static async countQueued(threadId: string, activeTurnId: string, tx: Transaction): Promise<number> {
      const active = await Turn.findByPk(activeTurnId, { attributes: ['ordinal'], transaction: tx });
      const behind = { [Op.gt]: active?.ordinal ?? 0 };
      return Turn.count({ where: { threadId, status: 'queued', ordinal: behind }, transaction: tx });
    }

    /** A thread's turns after an ordinal, in this order. */
    static async page(options: {
      threadId: string;
      order: Order;
      after: number | undefined;
      limit: number;
    }): Promise<Turn[]> {
      const { threadId, order, after, limit } = options;
      return Turn.findAll({
        where: {
          threadId,
          ...behind(order, after === undefined ? undefined : [['ordinal', after]]),
        },
        order: [['ordinal', order]],
        limit,
      });
    }

    /** Those of the given turns that were asked to stop. */
    static async findStopping(turnIds: string[]): Promise<string[]> {
      if (turnIds.length === 0) return [];
      const turns = await Turn.findAll({
        where: { id: turnIds, stopRequestedAt: { [Op.ne]: null } },
        attributes: ['id'],
        raw: true,
      });
      return turns.map(({ id }) => id);
    }

    /** Those of the given turns that wait for their client. Null stands for no turn. */
    static async waitingOf(turnIds: readonly (string | null)[]): Promise<Set<string>> {
      const ids = turnIds.filter((id) => id !== null);
      if (ids.length === 0) return new Set();
      const turns = await Turn.findAll({ where: { id: ids, status: 'waiting' }, attributes: ['id'], raw: true });
      return new Set(turns.map(({ id }) => id));
    }

    static async unendedOf(scope: { threadId: string } | { spaceId: string }, limit: number): Promise<Turn[]> {
      return Turn.findAll({ where: { ...scope, terminal: 0 }, limit });
    }

    get isTerminal(): boolean {
      return this.terminal === 1;
    }

    /** The chunk that tells clients the turn's state. */
    statusChunk(status: TurnStatus): UiChunk {
      return {
        type: 'data-turn',
        transient: true,
        data: { turnId: this.id, threadId: this.threadId, userMessageId: this.userMessageId, status },
      };
    }
  }

  Turn.init(
    {
      id: { type: DataTypes.STRING(40), primaryKey: true },
      threadId: DataTypes.STRING(40),
      spaceId: DataTypes.STRING(40),
      userId: DataTypes.STRING(40),
      ordinal: DataTypes.INTEGER.UNSIGNED,
      status: DataTypes.STRING(20),
      terminal: DataTypes.INTEGER,
      nextSeq: DataTypes.INTEGER.UNSIGNED,
      writerEpoch: DataTypes.INTEGER.UNSIGNED,
      outboxItemId: DataTypes.STRING(200),
      outboxHash: DataTypes.BLOB,
      userMessageId: DataTypes.STRING(200),
      assistantMessageId: DataTypes.STRING(40),
      mode: DataTypes.STRING(10),
      modelId: DataTypes.STRING(200),
      effort: DataTypes.STRING(40),
      notificationPriority: DataTypes.STRING(10),
      scopes: jsonText('scopes'),
      apiKeyId: DataTypes.STRING(40),
      stopRequestedAt: DataTypes.DATE(3),
      finishReason: DataTypes.STRING(20),
      errorCode: DataTypes.STRING(80),
      errorDetail: DataTypes.STRING(500),
      createdAt: DataTypes.DATE(3),
      startedAt: DataTypes.DATE(3),
      endedAt: DataTypes.DATE(3),
      logPurgedAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'turns', timestamps: false, underscored: true },
  );
  return Turn;
}
