import type { Database } from '../database/database.ts';
import { type Operation, operationModels } from './operation.ts';

/** What an activity is to destroy. */
export type Destruction = { threadId: string } | { spaceId: string } | { itemId: string } | { trashOf: string };

/**
 * For each kind of operation that destroys: its subject is out of everybody's sight since the request, or gone already.
 */
const livingSubject: Readonly<Record<string, string | undefined>> = {
  deleteThread: 'SELECT 1 FROM threads WHERE id = ? AND deleted_at IS NULL',
  deleteSpace: 'SELECT 1 FROM spaces WHERE id = ? AND deleted_at IS NULL',
  purgeItem: 'SELECT 1 FROM drive_items WHERE id = ? AND purging_at IS NULL',
};

/**
 * The operation that ordered this destruction: running, of the right kind and subject, and with its subject deleted.
 * Undefined when there is none. Whoever can start a workflow must not be able to destroy what nobody has deleted.
 */
export async function findOrder(
  database: Database,
  { kind, operationId }: { kind: string; operationId: string },
  destruction: Destruction,
): Promise<Operation | undefined> {
  const operation = await operationModels(database).Operation.findByPk(operationId);
  if (operation === null || operation.kind !== kind || operation.status !== 'running') return undefined;
  if (!isOf(operation, destruction)) return undefined;
  const living = livingSubject[kind];
  if (living === undefined) return operation;
  const [rows] = await database.pool.query(living, [operation.subjectId]);
  return (rows as unknown[]).length === 0 ? operation : undefined;
}

function isOf({ kind, subjectId, spaceId }: Operation, destruction: Destruction): boolean {
  if ('threadId' in destruction) return kind === 'deleteThread' && subjectId === destruction.threadId;
  if ('spaceId' in destruction) return kind === 'deleteSpace' && subjectId === destruction.spaceId;
  if ('itemId' in destruction) return kind === 'purgeItem' && subjectId === destruction.itemId;
  return ['emptyTrash', 'purgeItem'].includes(kind) && spaceId === destruction.trashOf;
}
