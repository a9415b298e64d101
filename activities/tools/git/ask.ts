import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../base/errors.ts';
import { idPrefixes } from '../../../base/ids.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { askForChange, type ChangeInput } from '../../../models/git/changes.ts';
import { askOfDraft, type DraftInput } from '../../../models/git/drafting.ts';
import type { GitChangeKind } from '../../../models/git/orders.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import type { GitToolDeps } from './place.ts';

const firstLookMs = 20;
const longestLookMs = 500;
/** Extra time, since other orders of the repository may come first. */
const marginMs = 5 * 60_000;

/** Gives the repository’s workflow an order and waits for its end. Orders with the same `id` are done once. */
export async function ask(
  { config, database, workflows }: GitToolDeps,
  turn: Turn,
  order: { itemId: string } & (
    | { id?: string; kind: GitChangeKind; input: ChangeInput }
    | { id: string; kind: 'commitDraft'; input: DraftInput }
  ),
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { spaceId, userId, apiKeyId: credentialId } = turn;
  const actor = { userId, credentialId, address: null };
  const deadlineMs = config.git.timeoutMs + marginMs;
  const request = { spaceId, actor, deadlineMs };
  const operation =
    order.kind === 'commitDraft'
      ? await askOfDraft(database, { ...request, ...order })
      : await askForChange({ database, config }, { ...request, ...order });
  if (operation.status === 'running') void workflows.startOperation(operation);
  for (let waitMs = firstLookMs; ; waitMs = Math.min(waitMs * 1.4, longestLookMs)) {
    signal.throwIfAborted();
    const now = await operationModels(database).Operation.findByPk(operation.id);
    if (now?.status === 'succeeded') return now.result ?? {};
    if (now === null || now.status !== 'running') {
      const { errorCode, errorDetail } = now ?? {};
      throw new DomainError(
        'conflict',
        errorCode ?? 'OPERATION_CANCELLED',
        errorDetail ?? 'The operation was cancelled.',
      );
    }
    await delay(waitMs, undefined, { signal });
  }
}

/** The id of a tool call's operation, by which a repeated call finds the operation. */
export function operationIdOf(toolCallId: string): string {
  return `${idPrefixes.operation}${toolCallId.slice(toolCallId.indexOf('_'))}`;
}
