import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, type Runner, select } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { findVersion } from '../environments/version.ts';
import type { Computer, ComputerBase } from './computer.ts';
import { lockAnyComputer } from './computers.ts';
import { remainsSince } from './remains.ts';
import { sourceOf } from './restoreSources.ts';
import { chainOf, discard, findSave, type HomeSave, insertSave, isLongChain, lockSave } from './saveRows.ts';
import { addSnapshot } from './snapshots.ts';
import { change } from './starting.ts';

/** A host, and a computer whose home it saves. */
export interface SavedOn {
  computerId: string;
  hostId: string;
}

/** What a host says about a save that it has taken. */
export interface Taken {
  takenAt: Date;
  homeBytes: number;
  uid: number | null;
  format: 'btrfs' | 'tar';
  /** Undefined: that of the computer. */
  base?: ComputerBase | null;
}

/** What a complete save becomes: the computer's head, or a snapshot of work on a host that had lost the computer. */
type Role = { as: 'head' } | { as: 'snapshot'; since: Date } | undefined;

async function roleOf(tx: Transaction, computer: Computer | undefined, hostId: string): Promise<Role> {
  if (computer === undefined || computer.deletedAt !== null || computer.wish === 'fork') return undefined;
  if (computer.hostId === hostId) return { as: 'head' };
  const since = await remainsSince(tx, { computerId: computer.id, hostId });
  return since && { as: 'snapshot', since };
}

/**
 * Begins a save of a home on its host, or goes on with one that was cut off. `kept` are the saves of which the host has
 * the snapshot. Undefined if this host has nothing of the computer to save.
 */
export async function beginSave(
  database: Database,
  { computerId, hostId }: SavedOn,
  kept: readonly string[],
): Promise<HomeSave | undefined> {
  return transaction(database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    const role = await roleOf(tx, computer, hostId);
    if (computer === undefined || role === undefined) return undefined;
    const { spaceId, generation, homeSaveId } = computer;
    const { base, environmentVersionId } = (computer.restoreBegan && (await sourceOf(tx, computer))) || computer;
    for (const { id } of await unfinished(tx, { computerId, hostId })) {
      const save = await findSave(tx, id);
      if (save === undefined) continue;
      // A tar archive cannot go on, since the home has changed meanwhile.
      const goesOn = save.takenAt === null || (save.format === 'btrfs' && kept.includes(id));
      if (goesOn && save.replacesId === homeSaveId) return save;
      await discard(tx, id);
    }
    const id = newId('homeSave');
    const of = { spaceId, computerId, hostId, generation, base, environmentVersionId };
    await insertSave(tx, { id, ...of, replacesId: homeSaveId });
    return findSave(tx, id);
  });
}

/** Saves of this host that are not complete, all or those of one computer. */
export async function unfinished(
  on: Runner,
  { hostId, computerId }: { hostId: string; computerId?: string },
): Promise<{ id: string; computerId: string }[]> {
  const [also, values] = computerId === undefined ? ['', []] : ['AND computer_id = ?', [computerId]];
  const sql = `SELECT id, computer_id FROM home_saves WHERE host_id = ? AND pieces IS NULL ${also} ORDER BY id`;
  return select(on, sql, [hostId, ...values]);
}

/**
 * Records what the host has taken, and chooses the parent: the head or the newest complete save that the host has. If
 * the chain of that is too long, it is the save of the computer's environment, or else none. With `avoidsBase`, a chain
 * may be four times as long as usual. Undefined if the save was given up meanwhile.
 */
export async function noteTaken(
  database: Database,
  save: HomeSave,
  taken: Taken,
  kept: readonly string[],
  { avoidsBase = false } = {},
): Promise<HomeSave | undefined> {
  return transaction(database, async (tx) => {
    const { base = save.base } = taken;
    // What the host has counts: a change of the system may have been given up while it went on there.
    const of = base === save.base ? save : { ...save, base, environmentVersionId: null };
    const { takenAt, homeBytes, uid, format } = taken;
    const isShort = async (save: HomeSave) => !isLongChain(await chainOf(tx, save), homeBytes, avoidsBase ? 4 : 1);
    const parent = format === 'btrfs' ? await parentOf(tx, of, kept, isShort) : undefined;
    const chained = parent && { parentId: parent.id, baseId: parent.baseId };
    const { environmentVersionId } = of;
    const row = { takenAt, homeBytes, uid, format, base, environmentVersionId, ...chained };
    await execute(tx, 'UPDATE home_saves SET ? WHERE id = ? AND taken_at IS NULL', [row, save.id]);
    return findSave(tx, save.id);
  });
}

/**
 * The complete save that is most like this one. After a restore, that is the head, and not the newest. After a change of
 * the system, it is what the version of the environment was saved as.
 */
async function parentOf(
  tx: Transaction,
  of: HomeSave,
  kept: readonly string[],
  isShort: (save: HomeSave) => Promise<boolean>,
): Promise<HomeSave | undefined> {
  const { replacesId, environmentVersionId } = of;
  const system = environmentVersionId === null ? undefined : (await findVersion(tx, environmentVersionId))?.saveId;
  const first = [replacesId, system].filter((id) => id != null && kept.includes(id)) as string[];
  let long: HomeSave | undefined;
  for (const id of [...first, ...kept.toSorted().toReversed()]) {
    // If the first changes since the system were too many already, they are no fewer now.
    if (long !== undefined && (id !== system || long.parentId === system)) continue;
    const save = await lockSave(tx, id);
    const isAlike = id === system || (save?.base === of.base && save.environmentVersionId === environmentVersionId);
    if (!isAlike || save?.format !== 'btrfs' || save.pieces === null) continue;
    if (await isShort(save)) return save;
    long ??= save;
  }
  return undefined;
}

/**
 * The saves of which a host should keep what it has: complete ones, and those that it is making. `kept` are those of
 * which it has a snapshot, which may have been another computer's.
 */
export async function usefulSaves(
  { pool }: Pick<Database, 'pool'>,
  { computerId, hostId }: SavedOn,
  kept: readonly string[],
): Promise<string[]> {
  const sql = `SELECT id FROM home_saves WHERE computer_id = ? AND (pieces IS NOT NULL OR host_id = ?)
    UNION SELECT id FROM home_saves WHERE id IN (?) AND pieces IS NOT NULL`;
  const rows = await select<{ id: string }>(pool, sql, [computerId, hostId, kept.length === 0 ? [''] : kept]);
  return rows.map(({ id }) => id);
}

/** Records a piece whose object is in the store. Throws if the save was given up meanwhile. */
export async function addPiece(
  database: Database,
  { id, spaceId }: HomeSave,
  {
    number,
    objectKey,
    storedBytes,
    sha256,
  }: { number: number; objectKey: string; storedBytes: number; sha256: Buffer },
): Promise<void> {
  await transaction(database, async (tx) => {
    const save = await lockSave(tx, id);
    if (save === undefined || save.pieces !== null) throw new Error(`The save ${id} was given up meanwhile.`);
    await driveModels(tx).DriveObject.keep(objectKey, sha256, tx);
    await insert(tx, 'home_save_pieces', { saveId: id, number, spaceId, objectKey, storedBytes });
    await execute(tx, 'UPDATE home_saves SET stored_bytes = stored_bytes + ? WHERE id = ?', [storedBytes, id]);
  });
}

/**
 * Completes a save whose pieces are all stored. If its host still has the computer, and no other save has become the
 * head since it was begun, it becomes the head. If the host had lost the computer, it becomes a snapshot. Otherwise it
 * is dropped: two copies of a computer never both save. Returns whether it is kept.
 */
export async function completeSave(database: Database, { id, computerId, hostId }: HomeSave): Promise<boolean> {
  return transaction(database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    const save = await lockSave(tx, id);
    if (save === undefined || save.pieces !== null) return save !== undefined;
    const role = save.hostId === hostId ? await roleOf(tx, computer, hostId) : undefined;
    const isOvertaken = role?.as === 'head' && computer?.homeSaveId !== save.replacesId;
    if (computer === undefined || role === undefined || isOvertaken) {
      await discard(tx, id);
      return false;
    }
    const count = '(SELECT COUNT(*) FROM home_save_pieces WHERE save_id = ?)';
    await execute(tx, `UPDATE home_saves SET pieces = ${count}, loose_at = NULL WHERE id = ?`, [id, id]);
    if (role.as === 'snapshot') {
      const name = `Work on ${hostId} that was not saved before ${role.since.toISOString()}`;
      await addSnapshot(tx, { spaceId: save.spaceId, computerId, saveId: id, name, createdBy: null });
    } else {
      await change(tx, computer, { homeSaveId: id, homeSavedAt: save.takenAt, homeSaveFailed: null });
      if (save.replacesId !== null) await loosen(tx, [save.replacesId]);
    }
    return true;
  });
}

/** Notes that these saves may belong to nothing now. */
export async function loosen(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(tx, 'UPDATE home_saves SET loose_at = ? WHERE id IN (?)', [new Date(), ids]);
}

/** Gives up the saves that a host is making of a computer that it loses. */
export async function abandonSaves(tx: Transaction, { computerId, hostId }: SavedOn): Promise<void> {
  const sql = "UPDATE home_saves SET host_id = '' WHERE computer_id = ? AND host_id = ? AND pieces IS NULL";
  await execute(tx, sql, [computerId, hostId]);
}

/** Notes why a home cannot be saved, or with null that it can. */
export async function noteSaveFailure(
  { pool }: Pick<Database, 'pool'>,
  { computerId, hostId }: SavedOn,
  code: string | null,
): Promise<void> {
  const sql = 'UPDATE computers SET home_save_failed = ? WHERE id = ? AND host_id = ?';
  await execute(pool, sql, [code, computerId, hostId]);
}

/** The computers among these whose homes this host saves. */
export async function savedHere(
  { pool }: Pick<Database, 'pool'>,
  hostId: string,
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return [];
  const sql = `SELECT id FROM computers
    WHERE id IN (?) AND host_id = ? AND deleted_at IS NULL AND (wish IS NULL OR wish <> 'fork')`;
  const rows = await select<{ id: string }>(pool, sql, [ids, hostId]);
  return rows.map(({ id }) => id);
}
