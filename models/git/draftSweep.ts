import type { RowDataPacket } from 'mysql2';
import { newId } from '../../base/ids.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type OldestFirst, sweepPageSize, type Waiting } from '../sweeping/oldestFirst.ts';
import type { DraftInput } from './drafting.ts';
import { beginOrder, type GitDraftKind } from './orders.ts';
import { lockRepository } from './repository.ts';

/** A draft for which something is to be done that nobody has asked for. */
export type DueDraft = Waiting & {
  itemId: string;
  spaceId: string;
  computerId: string;
  /** Its computer was deleted. */
  isLost?: boolean;
};

/** A draft whose turn has not come in this time is tried again; those who wait for the repository come first. */
const deadlineMs = 5 * 60_000;
const discardMs = 60 * 60_000;

/** How long it is tried to save a draft whose computer has ended. */
const patienceMs = 86_400_000;

/** What hosts say of computers may be as old as this. */
const beatSeconds = 120;

/**
 * Drafts that were not looked at for a while and whose computer runs and was used since, or whose computer has started
 * or ended since they were; or, for as long as we have patience, since that what is saved was in them. And those whose
 * computer is gone. What is paused, on its way, or on a lost host cannot be reached. Oldest first.
 */
export async function draftsToSave(
  { pool }: Pick<Database, 'pool'>,
  { before, after, savedBefore }: OldestFirst<DueDraft> & { savedBefore: Date },
): Promise<DueDraft[]> {
  const next = after === undefined ? '' : 'AND d.looked_at >= ? AND (d.looked_at > ? OR d.id > ?)';
  const nextValues = after === undefined ? [] : [after.since, after.since, after.id];
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT d.id, d.looked_at AS since, d.item_id AS itemId, d.space_id AS spaceId, d.computer_id AS computerId,
            c.id IS NULL OR c.deleted_at IS NOT NULL AS isLost
       FROM git_drafts d FORCE INDEX (git_drafts_sweep)
       LEFT JOIN computers c ON c.id = d.computer_id
      WHERE d.status = 'ready' AND d.looked_at < ? ${next}
        AND (c.id IS NULL OR c.deleted_at IS NOT NULL
          OR (c.status = 'running' AND d.looked_at < ?
            AND (c.processes > 0 OR c.active_at IS NULL OR c.active_at >= d.looked_at - INTERVAL ${beatSeconds} SECOND
              OR d.saved_at IS NULL OR d.error_code <> 'GIT_DRAFT_INCOMPLETE'))
          OR ((c.status IN ('running', 'stopped')
              OR (c.status = 'error' AND COALESCE(c.error_code, '') NOT IN ('HOST_LOST', 'HOST_REMOVED')))
            AND (c.status_at >= d.looked_at
              OR (d.looked_at < ? AND c.status_at >= ? AND (d.saved_at IS NULL OR c.status_at >= d.saved_at)))))
      ORDER BY d.looked_at, d.id LIMIT ${sweepPageSize}`,
    [before, ...nextValues, savedBefore, savedBefore, new Date(Date.now() - patienceMs)],
  );
  return rows.map((row) => ({ ...(row as DueDraft), isLost: row.isLost === 1 }));
}

/** Drafts that are to go, and of which something is left. Oldest first. */
export async function draftsToDiscard(
  { pool }: Pick<Database, 'pool'>,
  { before, after }: OldestFirst<DueDraft>,
): Promise<DueDraft[]> {
  const next = after === undefined ? '' : 'AND looked_at >= ? AND (looked_at > ? OR id > ?)';
  const nextValues = after === undefined ? [] : [after.since, after.since, after.id];
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT id, looked_at AS since, item_id AS itemId, space_id AS spaceId, computer_id AS computerId
       FROM git_drafts FORCE INDEX (git_drafts_sweep)
      WHERE status = 'discarding' AND looked_at < ? ${next}
      ORDER BY looked_at, id LIMIT ${sweepPageSize}`,
    [before, ...nextValues],
  );
  return rows as unknown as DueDraft[];
}

/**
 * Begins what is due, in the name of whoever made the draft, unless the repository has already something of the kind to
 * do for it. Returns whether there is an order.
 */
export async function askForDue(database: Database, { id, itemId }: Pick<DueDraft, 'id' | 'itemId'>): Promise<boolean> {
  return transaction(database, async (tx) => {
    const repository = await lockRepository(tx, itemId);
    const [draft] = await select<{ createdBy: string; status: string }>(
      tx,
      "SELECT created_by AS createdBy, status FROM git_drafts WHERE id = ? AND status <> 'preparing' FOR UPDATE",
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
