import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { takeVersion } from '../environments/sharing.ts';
import { findVersion } from '../environments/version.ts';
import type { Computer } from './computer.ts';
import { lockSave } from './saveRows.ts';
import { homeOf } from './snapshots.ts';

/** A version of an environment. */
export interface WantedSystem {
  environmentId: string;
  /** Undefined: the newest version that is ready. */
  environmentVersion?: number | undefined;
}

/** The columns of a new computer that say what its volume begins with. Throws 404, 409. */
export async function volumeOf(
  tx: Transaction,
  spaceId: string,
  { fromSnapshotId, environmentId, ...wanted }: { fromSnapshotId?: string } & Partial<WantedSystem>,
): Promise<Record<string, unknown>> {
  if (fromSnapshotId !== undefined) return homeOf(tx, spaceId, fromSnapshotId);
  return environmentId === undefined ? {} : systemOf(tx, spaceId, { environmentId, ...wanted });
}

/** The columns of a computer that begins with this version. The space is locked. */
export async function systemOf(tx: Transaction, spaceId: string, { environmentId, environmentVersion }: WantedSystem) {
  const { id, saveId } = await takeVersion(tx, { spaceId, environmentId, number: environmentVersion });
  const save = await lockSave(tx, saveId);
  return { homeSaveId: saveId, homeSavedAt: save?.takenAt ?? null, base: 'debian', environmentVersionId: id } as const;
}

/**
 * What a computer begins with if its head cannot be opened: the system of its version, or else of the newest one of its
 * environment. If it has neither, that is its base alone, and it is of no environment any more: the users that one names
 * are not there, and it can be given a version later. The space is locked.
 */
export async function systemBeside(
  tx: Transaction,
  { spaceId, homeSaveId, environmentVersionId }: Computer,
): Promise<Pick<Computer, 'homeSaveId'> & Partial<Pick<Computer, 'environmentVersionId'>>> {
  const nothing = { homeSaveId: null, environmentVersionId: null };
  const version = environmentVersionId === null ? undefined : await findVersion(tx, environmentVersionId);
  if (version === undefined) return nothing;
  const { saveId, environmentId } = version;
  if (saveId !== null && saveId !== homeSaveId) {
    await lockSave(tx, saveId);
    return { homeSaveId: saveId };
  }
  const newest = await systemOf(tx, spaceId, { environmentId }).catch((error: unknown) => {
    if (error instanceof DomainError) return undefined; // it is deleted, or no version is ready
    throw error;
  });
  return newest === undefined || newest.homeSaveId === homeSaveId ? nothing : newest;
}

const mebibyte = 1_048_576;

/** What its environment says of the processes of a computer, its base, and the size of its system beside its home. */
export async function settingOf(
  { pool }: Pick<Database, 'pool'>,
  { base, environmentVersionId }: Pick<Computer, 'base' | 'environmentVersionId'>,
) {
  if (base === null) return { env: {}, systemMiB: 0 };
  const version = environmentVersionId === null ? undefined : await findVersion(pool, environmentVersionId);
  const { env = {}, user = null, workdir = null, homeBytes } = version ?? {};
  const systemMiB = Math.ceil((homeBytes ?? 0) / mebibyte);
  return { base, env, systemMiB, ...(user !== null && { user }), ...(workdir !== null && { workdir }) };
}
