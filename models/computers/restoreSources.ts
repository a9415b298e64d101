import { type Runner, select } from '../database/sql.ts';
import { findVersion } from '../environments/version.ts';
import type { Computer, ComputerBase } from './computer.ts';
import { findSnapshot } from './snapshots.ts';

/** What a restore gives to a computer. */
export interface RestoreSource {
  /** For people. */
  name: string;
  saveId: string;
  takenAt: Date | null;
  homeBytes: number | null;
  base: ComputerBase | null;
  environmentVersionId: string | null;
  /** Whether it is only a system, beside which the computer keeps its home. */
  keepsHome: boolean;
}

/** What a computer is restored to: a snapshot, or the system of a version of an environment. */
export async function sourceOf(
  on: Runner,
  { restoresId }: Pick<Computer, 'restoresId'>,
): Promise<RestoreSource | undefined> {
  if (restoresId === null) return undefined;
  if (isVersion(restoresId)) return systemOf(on, restoresId);
  const snapshot = await findSnapshot(on, restoresId);
  if (snapshot === undefined || snapshot.saveId === null) return undefined;
  return { ...snapshot, saveId: snapshot.saveId, keepsHome: false };
}

/** Whether this is the id of a version of an environment, and not of a snapshot. */
export function isVersion(restoresId: string | null): boolean {
  return restoresId?.startsWith('evr_') ?? false;
}

async function systemOf(on: Runner, versionId: string): Promise<RestoreSource | undefined> {
  const version = await findVersion(on, versionId);
  if (version === undefined || version.saveId === null) return undefined;
  const { environmentId, number, saveId, homeBytes } = version;
  const [environment] = await select<{ name: string }>(on, 'SELECT name FROM environments WHERE id = ?', [
    environmentId,
  ]);
  const name = `version ${number} of ${environment?.name ?? 'an environment'}`;
  return { name, saveId, takenAt: null, homeBytes, base: 'debian', environmentVersionId: versionId, keepsHome: true };
}
