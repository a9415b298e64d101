import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { insert, type Runner, select } from '../database/sql.ts';
import { type Operation, type OperationEnd, operationModels } from '../operations/operation.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import type { ComputerBase } from './computer.ts';
import { lockSave } from './saveRows.ts';

/** A row of `computer_snapshots`: the name of a save, which is kept as long as it has one. */
export interface Snapshot {
  id: string;
  spaceId: string;
  computerId: string;
  name: string;
  /** Null until it is made. */
  saveId: string | null;
  /** Why it could not be made. */
  failedCode: string | null;
  /** Null if Atrium made it. */
  createdBy: string | null;
  createdAt: Date;
  /** These come from the save. */
  takenAt: Date | null;
  homeBytes: number | null;
  base: ComputerBase | null;
  environmentVersionId: string | null;
}

const query = `SELECT n.id, n.space_id, n.computer_id, n.name, n.save_id, n.failed_code, n.created_by, n.created_at,
    s.taken_at, s.home_bytes, s.base, s.environment_version_id
   FROM computer_snapshots n LEFT JOIN home_saves s ON s.id = n.save_id`;

/** A snapshot that is made. */
export type KeptSnapshot = Snapshot & { saveId: string };

/** Names a save, or orders one to be made. A save that is named is locked. */
export async function addSnapshot(
  tx: Transaction,
  {
    id = newId('computerSnapshot'),
    saveId = null,
    ...named
  }: Pick<Snapshot, 'spaceId' | 'computerId' | 'name' | 'createdBy'> & { id?: string; saveId?: string | null },
): Promise<void> {
  await insert(tx, 'computer_snapshots', { id, saveId, ...named, createdAt: new Date() });
}

/** The snapshots of a computer or of a space, newest first. */
export function listSnapshots(
  database: Database,
  { spaceId, computerId }: { spaceId: string; computerId?: string },
  page: PageRequest,
): Promise<Page<Snapshot>> {
  const [also, values] = computerId === undefined ? ['', []] : [' AND n.computer_id = ?', [computerId]];
  const sql = `${query} WHERE n.space_id = ?${also}`;
  return readPage(database, page, { sql, values: [spaceId, ...values], by: 'n.id', order: 'desc' });
}

/**
 * What the host of a computer keeps beside its head: the saves to which it is most likely restored, so that a restore
 * needs no store, and that of its environment, so that its next chain may begin there.
 */
export async function savesBesideHead({ pool }: Pick<Database, 'pool'>, computerId: string): Promise<string[]> {
  const named = `SELECT n.save_id FROM computer_snapshots n JOIN home_saves s ON s.id = n.save_id AND s.format = 'btrfs'
    WHERE n.computer_id = ? ORDER BY n.id DESC LIMIT 2`;
  const system = `SELECT v.save_id FROM environment_versions v
    JOIN computers c ON c.environment_version_id = v.id AND c.id = ? WHERE v.save_id IS NOT NULL`;
  const found = await Promise.all([named, system].map((sql) => select<{ saveId: string }>(pool, sql, [computerId])));
  return found.flat().map(({ saveId }) => saveId);
}

/** Throws 404. */
export async function getSnapshot(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, snapshotId }: { spaceId: string; snapshotId: string },
): Promise<Snapshot> {
  const snapshot = await findSnapshot(pool, snapshotId);
  if (snapshot?.spaceId !== spaceId) throw notFound('snapshot');
  return snapshot;
}

export async function findSnapshot(on: Runner, id: string): Promise<Snapshot | undefined> {
  const [row] = await select<Snapshot>(on, `${query} WHERE n.id = ?`, [id]);
  return row;
}

/** Locks a snapshot, so that it is not deleted meanwhile. */
export async function lockSnapshot(tx: Transaction, id: string): Promise<Snapshot | undefined> {
  await select(tx, 'SELECT id FROM computer_snapshots WHERE id = ? FOR UPDATE', [id]);
  return findSnapshot(tx, id);
}

/** A snapshot whose home a computer gets, locked. Throws 404, 409 `SNAPSHOT_NOT_MADE`. */
export async function lockKept(tx: Transaction, spaceId: string, snapshotId: string): Promise<KeptSnapshot> {
  const snapshot = await lockSnapshot(tx, snapshotId);
  if (snapshot?.spaceId !== spaceId) throw notFound('snapshot');
  const { saveId, failedCode } = snapshot;
  if (saveId !== null) return { ...snapshot, saveId };
  const detail = failedCode === null ? 'The snapshot is still being made. Try again soon.' : 'The snapshot failed.';
  throw new DomainError('conflict', 'SNAPSHOT_NOT_MADE', detail);
}

/** The columns of a new computer that begins with the home of a snapshot. Throws as `lockKept`. */
export async function homeOf(tx: Transaction, spaceId: string, snapshotId: string) {
  const { saveId, computerId, takenAt, base, environmentVersionId } = await lockKept(tx, spaceId, snapshotId);
  await lockSave(tx, saveId);
  return { homeSaveId: saveId, homeSavedAt: takenAt, forkedFrom: computerId, base, environmentVersionId };
}

/** Snapshots that are still to be made. */
export const unmadeSnapshots = waitingIn<Waiting>({
  table: 'computer_snapshots',
  where: 'save_id IS NULL AND failed_code IS NULL',
  time: 'created_at',
});

/** Whether a snapshot of the computer is still being made. */
export async function isBeingMade(tx: Transaction, computerId: string): Promise<boolean> {
  const sql = `SELECT id FROM computer_snapshots
    WHERE computer_id = ? AND save_id IS NULL AND failed_code IS NULL LIMIT 1`;
  return (await select(tx, sql, [computerId])).length > 0;
}

/** The operation that makes a snapshot, even if it has ended. */
export async function snapshotOperation(tx: Transaction, id: string): Promise<Operation | undefined> {
  const { Operation } = operationModels(tx);
  const where = { subjectId: id, kind: 'snapshotComputer' };
  return (await Operation.findOne({ where, transaction: tx })) ?? undefined;
}

export async function endSnapshotOperation(tx: Transaction, id: string, end: OperationEnd): Promise<void> {
  const operation = await snapshotOperation(tx, id);
  if (operation !== undefined) await operationModels(tx).Operation.end(operation.id, end, tx);
}
