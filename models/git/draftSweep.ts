import { newId } from '../../base/ids.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type OldestFirst, oldestFirst, type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import type { DraftInput } from './drafting.ts';
import { beginOrder, type GitDraftKind } from './orders.ts';
import { lockRepository } from './repository.ts';

/** A draft that the sweeper is to save, move or remove. */
export type DueDraft = Waiting & {
  itemId: string;
  spaceId: string;
  computerId: string;
  /** Its computer was deleted. */
  isLost?: boolean;
};

/** How long a save may wait behind other orders. A later sweep orders it again. */
const deadlineMs = 5 * 60_000;
const discardMs = 60 * 60_000;

/** How long saves are retried after the draft's computer ended. */
const patienceMs = 86_400_000;

/** Reports of hosts about computers may be this old. */
const beatSeconds = 120;

/**
 * Drafts that are due to be saved, the longest waiting first. A draft is due if its computer is gone, or has started or
 * ended since the sweeper last looked at the draft. It is also due if that look was before `savedBefore`, and one of
 * these holds: its computer runs and was used since the look; its computer runs and the last save failed or is missing;
 * its computer has started or ended since the last save, within the retry period. Computers that are paused, in
 * transition or on a lost host cannot be reached.
 */
export async function draftsToSave(
  database: Pick<Database, 'pool'>,
  { savedBefore, ...page }: OldestFirst<DueDraft> & { savedBefore: Date },
): Promise<DueDraft[]> {
  const isLost = 'c.id IS NULL OR c.deleted_at IS NOT NULL';
  const due = await oldestFirst<Omit<DueDraft, 'isLost'> & { isLost: number }>(
    database,
    {
      table: 'git_drafts d',
      index: 'git_drafts_sweep',
      joins: 'LEFT JOIN computers c ON c.id = d.computer_id',
      id: 'd.id',
      columns: ['d.item_id', 'd.space_id', 'd.computer_id', `${isLost} AS isLost`],
      where: `d.status = 'ready' AND (${isLost}
        OR (c.status = 'running' AND d.looked_at < ?
          AND (c.processes > 0 OR c.active_at IS NULL OR c.active_at >= d.looked_at - INTERVAL ${beatSeconds} SECOND
            OR d.saved_at IS NULL OR d.error_code <> 'GIT_DRAFT_INCOMPLETE'))
        OR ((c.status IN ('running', 'stopped')
            OR (c.status = 'error' AND COALESCE(c.error_code, '') NOT IN ('HOST_LOST', 'HOST_REMOVED')))
          AND (c.status_at >= d.looked_at
            OR (d.looked_at < ? AND c.status_at >= ? AND (d.saved_at IS NULL OR c.status_at >= d.saved_at)))))`,
      values: [savedBefore, savedBefore, new Date(Date.now() - patienceMs)],
      time: 'd.looked_at',
    },
    page,
  );
  return due.map((draft) => ({ ...draft, isLost: draft.isLost === 1 }));
}

/** Discarded drafts that are not removed yet. */
export const draftsToDiscard = waitingIn<DueDraft>({
  table: 'git_drafts',
  index: 'git_drafts_sweep',
  columns: ['item_id', 'space_id', 'computer_id'],
  where: "status = 'discarding'",
  time: 'looked_at',
});

/**
 * Orders a save or a removal of a draft in the name of its creator, unless such an order is waiting already. Returns
 * whether there is an order.
 */
export async function askForDue(database: Database, { id, itemId }: Pick<DueDraft, 'id' | 'itemId'>): Promise<boolean> {
  return transaction(database, async (tx) => {
    const repository = await lockRepository(tx, itemId);
    const [draft] = await select<{ createdBy: string; status: string }>(
      tx,
      "SELECT created_by, status FROM git_drafts WHERE id = ? AND status <> 'preparing' FOR UPDATE",
      [id],
    );
    if (repository === undefined || repository.removedAt !== null || draft === undefined) return false;
    const isToGo = draft.status === 'discarding';
    await execute(tx, 'UPDATE git_drafts SET looked_at = ? WHERE id = ?', [new Date(), id]);
    const kind: GitDraftKind = isToGo ? 'discardDraft' : 'saveDraft';
    const waiting = await select<{ input: string }>(tx, 'SELECT input FROM git_orders WHERE item_id = ? AND kind = ?', [
      itemId,
      kind,
    ]);
    if (waiting.some(({ input }) => (JSON.parse(input) as DraftInput).draftId === id)) return true;
    const input: DraftInput = { draftId: id };
    await beginOrder(tx, repository, {
      id: newId('operation'),
      kind,
      input: { ...input },
      actor: { userId: draft.createdBy, credentialId: null },
      deadlineMs: isToGo ? discardMs : deadlineMs,
    });
    return true;
  });
}
