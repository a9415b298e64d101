import { type Database, transaction } from '../database/database.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { chatModels } from './models.ts';

/** Hides a thread and begins the operation that purges it, in one commit. */
export async function deleteThread(database: Database, threadId: string): Promise<Operation> {
  return transaction(database, async (tx) => {
    const { Thread, ThreadAlias } = chatModels(tx);
    const thread = await Thread.lock(threadId, tx);
    await thread.update({ deletedAt: new Date() }, { transaction: tx });
    // The client's own chat id may name a new thread from now on.
    await ThreadAlias.destroy({ where: { threadId }, transaction: tx });
    const { spaceId, userId } = thread;
    return operationModels(tx).Operation.begin({ kind: 'deleteThread', spaceId, userId, subjectId: threadId }, tx);
  });
}
