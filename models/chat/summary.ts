import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';

/**
 * Replaces all of a thread up to a turn in a prompt. Each summary includes the one before; the messages themselves
 * stay, and are read as before.
 */
export type ThreadSummary = InstanceType<ReturnType<typeof defineThreadSummary>>;

export function defineThreadSummary(sequelize: Sequelize) {
  class ThreadSummary extends Model {
    declare threadId: string;
    /** The ordinal of the last turn that is in it. */
    declare upToOrdinal: number;
    /** The turn that it was made for. */
    declare turnId: string;
    declare modelId: string;
    declare summary: string;
    declare createdAt: Date;

    /** The latest that does not cover a turn or anything after it. */
    static async before(threadId: string, ordinal: number): Promise<ThreadSummary | null> {
      return ThreadSummary.findOne({
        where: { threadId, upToOrdinal: { [Op.lt]: ordinal } },
        order: [['upToOrdinal', 'DESC']],
      });
    }

    static async add(
      tx: Transaction,
      summary: Pick<ThreadSummary, 'threadId' | 'upToOrdinal' | 'turnId' | 'modelId' | 'summary'>,
    ): Promise<void> {
      await ThreadSummary.create({ ...summary, createdAt: new Date() }, { transaction: tx });
    }

    static async countOf(turnId: string): Promise<number> {
      return ThreadSummary.count({ where: { turnId } });
    }

    /** Drops those that cover messages which are being replaced. */
    static async dropFrom(threadId: string, ordinal: number, tx: Transaction): Promise<void> {
      await ThreadSummary.destroy({ where: { threadId, upToOrdinal: { [Op.gte]: ordinal } }, transaction: tx });
    }
  }

  ThreadSummary.init(
    {
      threadId: { type: DataTypes.STRING(40), primaryKey: true },
      upToOrdinal: { type: DataTypes.INTEGER.UNSIGNED, primaryKey: true },
      turnId: DataTypes.STRING(40),
      modelId: DataTypes.STRING(200),
      summary: DataTypes.TEXT('medium'),
      createdAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'thread_summaries', timestamps: false, underscored: true },
  );
  return ThreadSummary;
}
