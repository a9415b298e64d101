import { Op } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { chatModels } from './models.ts';

/** Hides a thread and begins the operation that purges it, in one commit. */
export async function deleteThread(database: Database, threadId: string): Promise<Operation> {
  return transaction(database, async (tx) => {
    const { Thread, ThreadAlias } = chatModels(tx);
    const thread = await Thread.lock(threadId, tx);
    await thread.update({ deletedAt: new Date() }, { transaction: tx });
    // The client may use its own chat id for a new thread from now on.
    await ThreadAlias.destroy({ where: { threadId }, transaction: tx });
    const { spaceId, userId } = thread;
    return operationModels(tx).Operation.begin({ kind: 'deleteThread', spaceId, userId, subjectId: threadId }, tx);
  });
}

/** Expired threads in which no turn runs, the longest expired first. */
export async function expiredThreads(database: Database, limit: number): Promise<string[]> {
  const threads = await chatModels(database).Thread.findAll({
    attributes: ['id'],
    where: { expiresAt: { [Op.lt]: new Date() }, deletedAt: null, activeTurnId: null },
    order: [
      ['expiresAt', 'ASC'],
      ['id', 'ASC'],
    ],
    limit,
    raw: true,
  });
  return threads.map(({ id }) => id);
}
