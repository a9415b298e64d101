import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { type Operation, operationModels } from './operation.ts';

/** The target of a destroying activity. */
export type Destruction = { threadId: string } | { spaceId: string } | { itemId: string } | { trashOf: string };

/** For each kind of destroying operation, SQL that finds its subject if the subject has not been deleted. */
const livingSubject: Readonly<Record<string, string | undefined>> = {
  deleteThread: 'SELECT 1 FROM threads WHERE id = ? AND deleted_at IS NULL',
  deleteSpace: 'SELECT 1 FROM spaces WHERE id = ? AND deleted_at IS NULL',
  purgeItem: 'SELECT 1 FROM drive_items WHERE id = ? AND purging_at IS NULL',
};

/**
 * The operation that ordered this destruction: running, of the right kind and subject, and with its subject deleted.
 * Undefined if there is none. So a caller that can start a workflow cannot destroy what no user has deleted.
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
  const rows = await select(database.pool, living, [operation.subjectId]);
  return rows.length === 0 ? operation : undefined;
}

function isOf({ kind, subjectId, spaceId }: Operation, destruction: Destruction): boolean {
  if ('threadId' in destruction) return kind === 'deleteThread' && subjectId === destruction.threadId;
  if ('spaceId' in destruction) return kind === 'deleteSpace' && subjectId === destruction.spaceId;
  if ('itemId' in destruction) return kind === 'purgeItem' && subjectId === destruction.itemId;
  return ['emptyTrash', 'purgeItem'].includes(kind) && spaceId === destruction.trashOf;
}
