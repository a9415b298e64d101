import type { Turn } from '../../../models/chat/turn.ts';
import { askForChange, type ChangeInput } from '../../../models/git/changes.ts';
import { askOfDraft, type DraftInput } from '../../../models/git/drafting.ts';
import type { GitChangeKind } from '../../../models/git/orders.ts';
import { actorOfTurn } from '../calls.ts';
import { resultOf } from '../operations.ts';
import type { GitToolDeps } from './place.ts';

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
  const deadlineMs = config.git.timeoutMs + marginMs;
  const request = { spaceId: turn.spaceId, actor: actorOfTurn(turn), deadlineMs };
  const operation =
    order.kind === 'commitDraft'
      ? await askOfDraft(database, { ...request, ...order })
      : await askForChange({ database, config }, { ...request, ...order });
  return resultOf({ database, workflows }, operation, signal);
}
