import { lockAnyComputer } from '../../computers/computers.ts';
import { lockSave } from '../../computers/saveRows.ts';
import { type Database, transaction } from '../../database/database.ts';
import { builderOf, findVersion, lockVersion } from '../version.ts';
import { keepLayer, noteBuilt } from './layers.ts';
import { changeStep, stepRows } from './stepRows.ts';

/**
 * Records that this host has saved what a step has made. Returns false if the computer has left the host since the step,
 * or was started anew.
 */
export async function keepStep(
  database: Database,
  { versionId, number, hostId }: { versionId: string; number: number; hostId: string },
): Promise<boolean> {
  const seen = await findVersion(database.pool, versionId);
  if (seen === undefined) return true;
  return transaction(database, async (tx) => {
    const builder = await lockAnyComputer(tx, builderOf(seen).computerId);
    const version = await lockVersion(tx, versionId);
    const step = (await stepRows(tx, [versionId])).find((one) => one.number === number);
    if (version?.status !== 'building' || step?.status !== 'ran') return true;
    if (builder?.hostId !== hostId || builder.generation !== step.generation || builder.homeSaveId === null)
      return false;
    await lockSave(tx, builder.homeSaveId);
    await keepLayer(tx, version.spaceId, step.digest, builder.homeSaveId);
    await noteBuilt(tx, version, builder.homeSaveId);
    await changeStep(tx, step, { status: 'done' });
    return true;
  });
}

/** The computer of a step that is still to be saved. */
export async function stepToSave(
  { pool }: Pick<Database, 'pool'>,
  versionId: string,
  number: number,
): Promise<string | undefined> {
  const version = await findVersion(pool, versionId);
  const step = (await stepRows(pool, [versionId])).find((one) => one.number === number);
  return version?.status === 'building' && step?.status === 'ran' ? builderOf(version).computerId : undefined;
}
