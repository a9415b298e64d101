import { newId } from '../../base/ids.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { keepThreadFile, type ResultStore } from './largeResults.ts';
import type { AttachedFile } from './message.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';

const folder = 'attachments';
/** How long a thread stays that was made for files of a message which was then refused. */
const preparedMs = 24 * 60 * 60_000;

/**
 * Makes a thread for the files of a message that is not accepted yet. It is in no list, and expires unless the message
 * follows (`isPrepared` in acceptMessage.ts).
 */
export async function prepareThread(
  database: Database,
  { spaceId, userId }: { spaceId: string; userId: string },
): Promise<Thread> {
  const expiresAt = new Date(Date.now() + preparedMs);
  return transaction(database, async (tx) => {
    await requireLivingSpace(tx, spaceId);
    const thread = chatModels(tx).Thread.prepare({ id: newId('thread'), spaceId, userId, expiresAt });
    return thread.save({ transaction: tx });
  });
}

/** Stores a file that was sent within a message, as a file of its thread. The same name again replaces it. */
export async function keepSentFile(
  store: Pick<ResultStore, 'database' | 'storage' | 'limits'>,
  thread: Pick<Thread, 'id' | 'spaceId' | 'userId'>,
  { name, fileName, size, bytes }: { name: string; fileName: string; size: number; bytes: AsyncIterable<Buffer> },
): Promise<AttachedFile> {
  const { id: threadId, spaceId, userId } = thread;
  const { item, place } = await keepThreadFile(store, { spaceId, userId, threadId }, [folder, name], bytes);
  return {
    path: place.path,
    containerId: place.containerId,
    mimeType: item.content?.contentType ?? '',
    fileName,
    itemId: item.id,
    version: item.version,
    size,
    isSent: true,
  };
}
