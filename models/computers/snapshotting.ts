import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { failedWith } from './computerOperations.ts';
import { lockAnyComputer, lockComputer } from './computers.ts';
import { findHost, isGivenUp, refusalOfHost } from './hosts.ts';
import { requireRoomForSnapshot } from './quotas.ts';
import { detailOf, reasonCode } from './reasons.ts';
import { lockSave } from './saveRows.ts';
import { loosen } from './saves.ts';
import { addSnapshot, endSnapshotOperation, findSnapshot, lockSnapshot, snapshotOperation } from './snapshots.ts';
import { requireQuietHome } from './starting.ts';

type Deps = { database: Database; config: Pick<Config, 'computers'> };

/** What the workflow of a snapshot does next. */
export type SnapshotStep = { do: 'rest' } | { do: 'take'; hostId: string };

/**
 * Asks for a snapshot of a computer's home, in whatever state the computer is. Returns the operation, or undefined if
 * the snapshot is made. A known id returns its operation. Throws 404, 409 `COMPUTER_UNUSED`, `COMPUTER_BUSY` or
 * `TOO_MANY_SNAPSHOTS`, 422 `MEMORY_NOT_KEPT`, 503 `HOST_LOST`.
 */
export async function askForSnapshot(
  { database, config }: Deps,
  request: {
    spaceId: string;
    computerId: string;
    id: string;
    name?: string | undefined;
    /** Whether the memory of processes must be kept too. */
    hasMemory?: boolean;
    actor: Actor & { userId: string };
  },
): Promise<Operation | undefined> {
  const { spaceId, computerId, id, hasMemory = false, actor } = request;
  return transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    if ((await findSnapshot(tx, id)) !== undefined) return snapshotOperation(tx, id);
    const computer = await lockComputer(tx, spaceId, computerId);
    if (hasMemory) throw memoryNotKept();
    requireQuietHome(computer);
    const { hostId, homeSaveId } = computer;
    if (hostId === null && homeSaveId === null) {
      throw new DomainError('conflict', 'COMPUTER_UNUSED', detailOf('COMPUTER_UNUSED'));
    }
    const refusal = hostId === null ? undefined : await refusalOfHost(database, hostId, config);
    if (refusal !== undefined) throw refusal;
    await requireRoomForSnapshot(tx, spaceId, config);
    const name = request.name ?? `Snapshot of ${new Date().toISOString().slice(0, 16).replace('T', ' ')}`;
    await addSnapshot(tx, { id, spaceId, computerId, name, createdBy: actor.userId });
    await appendAudit(tx, spaceId, actor, 'computer.snapshot-taken', computerId);
    if (hostId === null && homeSaveId !== null) {
      await keep(tx, id, homeSaveId);
      return undefined;
    }
    return operationModels(tx).Operation.begin(
      { kind: 'snapshotComputer', spaceId, userId: actor.userId, subjectId: id },
      tx,
    );
  });
}

/** What an agent inside and its holder say to each other does not outlive the holder, so no driver restores processes. */
function memoryNotKept(): DomainError {
  const detail = 'A snapshot keeps the files of a computer. The memory of its processes cannot be kept.';
  return new DomainError('unprocessable', 'MEMORY_NOT_KEPT', detail, {
    errors: [{ pointer: '/memory', detail: 'cannot be kept' }],
  });
}

/** Deletes a snapshot. Its save goes too if nothing else needs it. Throws 404, 409 `SNAPSHOT_IN_USE`. */
export async function deleteSnapshot(
  database: Database,
  { spaceId, snapshotId, actor }: { spaceId: string; snapshotId: string; actor: Actor },
): Promise<void> {
  await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    const snapshot = await lockSnapshot(tx, snapshotId);
    if (snapshot?.spaceId !== spaceId) throw notFound('snapshot');
    const users = "SELECT id FROM computers WHERE restores_id = ? AND wish = 'restore' LIMIT 1";
    if ((await select(tx, users, [snapshotId])).length > 0) {
      const detail = 'A computer is being restored from the snapshot. Try again in a moment.';
      throw new DomainError('conflict', 'SNAPSHOT_IN_USE', detail, { retryAfterSeconds: 1 });
    }
    await execute(tx, 'DELETE FROM computer_snapshots WHERE id = ?', [snapshotId]);
    if (snapshot.saveId !== null) await loosen(tx, [snapshot.saveId]);
    await endSnapshotOperation(tx, snapshotId, failedWith('SNAPSHOT_DELETED'));
    await appendAudit(tx, spaceId, actor, 'snapshot.deleted', snapshotId);
  });
}

/** Decides how to make a snapshot. The decision is in the rows, so asking again gives the same step. */
export async function nextOfSnapshot({ database, config }: Deps, snapshotId: string): Promise<SnapshotStep> {
  return onSnapshot(database, snapshotId, async (tx, computerId) => {
    const computer = await lockAnyComputer(tx, computerId);
    const { hostId = null, homeSaveId = null } = computer ?? {};
    if (computer === undefined || computer.deletedAt !== null) return fail(tx, snapshotId, 'COMPUTER_DELETED');
    if (hostId !== null) {
      const isLost = isGivenUp(await findHost(database, hostId), config);
      return isLost ? fail(tx, snapshotId, 'HOST_LOST') : { do: 'take', hostId };
    }
    // Between two hosts, its home is the save.
    if (homeSaveId === null) return fail(tx, snapshotId, 'COMPUTER_UNUSED');
    await keep(tx, snapshotId, homeSaveId);
    return { do: 'rest' };
  });
}

/** Records that this host has saved the home for a snapshot. Returns false if it has lost the computer meanwhile. */
export async function keepSnapshot(database: Database, snapshotId: string, hostId: string): Promise<boolean> {
  const step = await onSnapshot(database, snapshotId, async (tx, computerId) => {
    const computer = await lockAnyComputer(tx, computerId);
    if (computer?.hostId !== hostId) return { do: 'take', hostId };
    if (computer.homeSaveId === null) return fail(tx, snapshotId, 'COMPUTER_UNUSED');
    await keep(tx, snapshotId, computer.homeSaveId);
    return { do: 'rest' };
  });
  return step.do === 'rest';
}

/**
 * Fails a snapshot whose operation has ended without it, as when an operator ends the workflow. Returns false if it is
 * still being made.
 */
export async function failLostSnapshot(database: Database, snapshotId: string): Promise<boolean> {
  const step = await onSnapshot(database, snapshotId, async (tx) => {
    const operation = await snapshotOperation(tx, snapshotId);
    return operation?.status === 'running' ? { do: 'take', hostId: '' } : fail(tx, snapshotId, 'WORKFLOW_LOST');
  });
  return step.do === 'rest';
}

export async function failSnapshot(database: Database, snapshotId: string, code: string): Promise<void> {
  await onSnapshot(database, snapshotId, (tx) => fail(tx, snapshotId, code));
}

/** The computer of a snapshot that is still to be made. */
export async function snapshotOrder({ pool }: Database, snapshotId: string): Promise<string | undefined> {
  const snapshot = await findSnapshot(pool, snapshotId);
  return snapshot?.saveId === null && snapshot.failedCode === null ? snapshot.computerId : undefined;
}

/** Works on a snapshot that is still to be made. The computer is locked before the snapshot, as everywhere. */
async function onSnapshot(
  database: Database,
  snapshotId: string,
  work: (tx: Transaction, computerId: string) => Promise<SnapshotStep>,
): Promise<SnapshotStep> {
  const computerId = await snapshotOrder(database, snapshotId);
  if (computerId === undefined) return { do: 'rest' };
  return transaction(database, (tx) => work(tx, computerId));
}

async function keep(tx: Transaction, snapshotId: string, saveId: string): Promise<void> {
  await lockSave(tx, saveId);
  await settle(tx, snapshotId, { saveId });
  await endSnapshotOperation(tx, snapshotId, { status: 'succeeded', result: { ok: true, id: snapshotId } });
}

async function fail(tx: Transaction, snapshotId: string, code: string): Promise<{ do: 'rest' }> {
  const failedCode = reasonCode(code);
  await settle(tx, snapshotId, { failedCode });
  await endSnapshotOperation(tx, snapshotId, failedWith(failedCode));
  return { do: 'rest' };
}

/** Nothing if it was deleted, or is settled already. */
async function settle(tx: Transaction, id: string, row: { saveId: string } | { failedCode: string }): Promise<void> {
  const sql = 'UPDATE computer_snapshots SET ? WHERE id = ? AND save_id IS NULL AND failed_code IS NULL';
  await execute(tx, sql, [row, id]);
}
