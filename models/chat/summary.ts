import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';

/**
 * A summary that replaces a thread up to a turn in prompts. Each summary includes the one before it. The messages
 * themselves stay and can be read as before.
 */
export type ThreadSummary = InstanceType<ReturnType<typeof defineThreadSummary>>;

export function defineThreadSummary(sequelize: Sequelize) {
  class ThreadSummary extends Model {
    declare threadId: string;
    /** The ordinal of the last turn that it covers. */
    declare upToOrdinal: number;
    /** The turn for which it was made. */
    declare turnId: string;
    declare modelId: string;
    declare summary: string;
    declare createdAt: Date;

    /** The latest summary that covers only turns before this ordinal. */
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

    /** Deletes the summaries that cover replaced messages. */
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
