import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, type Runner, select } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import type { ComputerBase } from './computer.ts';

/**
 * A row of `home_saves`: the change of a home since its parent, or without one (a base) the whole home. Saves form a
 * tree. They stay while a computer's head, a snapshot, an environment or another save
 * refers to them.
 */
export interface HomeSave {
  id: string;
  spaceId: string;
  computerId: string;
  parentId: string | null;
  baseId: string;
  /** The head of the computer when the save was begun. */
  replacesId: string | null;
  hostId: string;
  generation: number;
  format: 'btrfs' | 'tar' | null;
  uid: number | null;
  takenAt: Date | null;
  homeBytes: number | null;
  storedBytes: number;
  /** How many pieces it has. Null until all are stored. */
  pieces: number | null;
  /** Those of the computer when the save was begun. */
  base: ComputerBase | null;
  environmentVersionId: string | null;
  /** 1: computers of other spaces may begin with it. */
  isShared: number;
}

type SetLater = 'format' | 'uid' | 'takenAt' | 'homeBytes' | 'storedBytes' | 'pieces' | 'isShared';

/** A longer chain takes too long to fill a home from. */
const mostIncrements = 60;

const columns = `id, space_id, computer_id, parent_id, base_id, replaces_id, host_id, generation, format, uid, taken_at,
  home_bytes, stored_bytes, pieces, base, environment_version_id, is_shared`;

export async function insertSave(
  tx: Transaction,
  save: Omit<HomeSave, 'parentId' | 'baseId' | SetLater>,
): Promise<void> {
  const now = new Date();
  await insert(tx, 'home_saves', { ...save, baseId: save.id, looseAt: now, createdAt: now });
}

export async function findSave(on: Runner, id: string): Promise<HomeSave | undefined> {
  const [row] = await select<HomeSave>(on, `SELECT ${columns} FROM home_saves WHERE id = ?`, [id]);
  return row;
}

/** Whoever makes something refer to a save locks it first, so that it is not removed meanwhile. */
export async function lockSave(tx: Transaction, id: string): Promise<HomeSave | undefined> {
  const [row] = await select<HomeSave>(tx, `SELECT ${columns} FROM home_saves WHERE id = ? FOR UPDATE`, [id]);
  return row;
}

/** A save and those before it, the base first. */
export async function chainOf(on: Runner, save: HomeSave): Promise<HomeSave[]> {
  const rows = await select<HomeSave>(on, `SELECT ${columns} FROM home_saves WHERE base_id = ?`, [save.baseId]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const chain: HomeSave[] = [];
  for (let at: HomeSave | undefined = byId.get(save.id); at !== undefined; at = byId.get(at.parentId ?? '')) {
    chain.unshift(at);
  }
  return chain;
}

/**
 * Whether a save of so many bytes should not follow this chain: it is half as long again as a new base would be. A chain
 * may be so many `times` as long as usual.
 */
export function isLongChain(chain: readonly HomeSave[], homeBytes: number, times: number): boolean {
  const [base, ...increments] = chain;
  if (increments.length >= times * mostIncrements) return true;
  const bytes = chain.reduce((sum, { storedBytes }) => sum + Number(storedBytes), 0);
  const growth = homeBytes / Math.max(Number(base?.homeBytes ?? 0), 1);
  return bytes > Number(base?.storedBytes ?? 0) * Math.max(growth, 1) * (1 + times / 2);
}

/** The keys of a save's objects, in order. */
export async function pieceKeys({ pool }: Pick<Database, 'pool'>, { id }: Pick<HomeSave, 'id'>): Promise<string[]> {
  const sql = 'SELECT object_key FROM home_save_pieces WHERE save_id = ? ORDER BY number';
  const rows = await select<{ objectKey: string }>(pool, sql, [id]);
  return rows.map(({ objectKey }) => objectKey);
}

/** How many pieces of a save are stored. */
export async function storedPieces({ pool }: Pick<Database, 'pool'>, { id }: HomeSave): Promise<number> {
  const sql = 'SELECT COUNT(*) AS count FROM home_save_pieces WHERE save_id = ?';
  const [row] = await select<{ count: number }>(pool, sql, [id]);
  return row?.count ?? 0;
}

/** Removes a save to which nothing refers. */
export async function discard(tx: Transaction, id: string): Promise<void> {
  const rows = await select<{ objectKey: string }>(tx, 'SELECT object_key FROM home_save_pieces WHERE save_id = ?', [
    id,
  ]);
  await driveModels(tx).DriveObject.doom(
    rows.map(({ objectKey }) => objectKey),
    tx,
  );
  await execute(tx, 'DELETE FROM home_save_pieces WHERE save_id = ?', [id]);
  await execute(tx, 'DELETE FROM home_saves WHERE id = ?', [id]);
}

/** Removes a save unless it is complete. */
export async function giveUpSave(database: Database, id: string): Promise<void> {
  await transaction(database, async (tx) => {
    const save = await lockSave(tx, id);
    if (save?.pieces === null) await discard(tx, id);
  });
}

/** Saves that may belong to nothing. */
export const looseSaves = waitingIn<Waiting>({ table: 'home_saves', where: 'loose_at IS NOT NULL', time: 'loose_at' });

const isReferredTo = `EXISTS (SELECT 1 FROM computers c WHERE c.home_save_id = s.id)
  OR EXISTS (SELECT 1 FROM computer_snapshots n WHERE n.save_id = s.id)
  OR EXISTS (SELECT 1 FROM environment_versions v WHERE v.save_id = s.id)
  OR EXISTS (SELECT 1 FROM environment_layers l WHERE l.save_id = s.id)
  OR EXISTS (SELECT 1 FROM home_saves child WHERE child.parent_id = s.id)`;
/** Its host may still complete it. */
const isAwaited = `s.pieces IS NULL AND EXISTS (SELECT 1 FROM computers c WHERE c.id = s.computer_id
  AND c.deleted_at IS NULL AND (c.host_id = s.host_id OR EXISTS (SELECT 1 FROM computer_remains r
    WHERE r.computer_id = s.computer_id AND r.host_id = s.host_id)))`;

/** Removes a save if it belongs to nothing, and then those before it. Returns how many were removed. */
export async function collectSave(database: Database, saveId: string): Promise<number> {
  let removed = 0;
  for (let id: string | null = saveId; id !== null; ) {
    const next: { parentId: string | null } | undefined = await collectOne(database, id);
    if (next === undefined) return removed;
    removed += 1;
    id = next.parentId;
  }
  return removed;
}

async function collectOne(database: Database, id: string): Promise<{ parentId: string | null } | undefined> {
  return transaction(database, async (tx) => {
    const save = await lockSave(tx, id);
    if (save === undefined) return undefined;
    const sql = `SELECT (${isReferredTo}) AS isKept, (${isAwaited}) AS isAwaited FROM home_saves s WHERE s.id = ?`;
    const [row] = await select<{ isKept: number; isAwaited: number }>(tx, sql, [id]);
    if (row?.isAwaited === 1) return undefined;
    if (row?.isKept === 1) {
      await execute(tx, 'UPDATE home_saves SET loose_at = NULL WHERE id = ?', [id]);
      return undefined;
    }
    if (save.parentId !== null) {
      // If this process ends here, the next sweep goes on at the parent.
      await execute(tx, 'UPDATE home_saves SET loose_at = ? WHERE id = ?', [new Date(), save.parentId]);
    }
    await discard(tx, id);
    return { parentId: save.parentId };
  });
}
