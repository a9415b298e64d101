import { lockAnyComputer } from '../../computers/computers.ts';
import { lockSave } from '../../computers/saveRows.ts';
import { type Database, transaction } from '../../database/database.ts';
import { select } from '../../database/sql.ts';
import { builderOf, findVersion, lockVersion } from '../version.ts';
import { keepLayer, noteBuilt } from './layers.ts';
import { changeStep, stepRows } from './stepRows.ts';

/**
 * Records that this host has saved what a step has made. Returns false if the computer has left the host since the step,
 * or was started anew, or if a later step has begun.
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
    const steps = await stepRows(tx, [versionId]);
    const step = steps.find((one) => one.number === number);
    if (version?.status !== 'building' || step?.status !== 'ran') return true;
    // A save that is made now would have the files of later steps.
    if (steps.some((other) => other.number > number && other.status !== 'waiting')) return false;
    if (builder?.hostId !== hostId || builder.generation !== step.generation || builder.homeSaveId === null)
      return false;
    await lockSave(tx, builder.homeSaveId);
    await keepLayer(tx, version, step.digest, builder.homeSaveId);
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

/** How many versions a host keeps ready for new computers. */
const mostReady = 20;

/**
 * The saves of versions that this host has made and from which computers will begin: of those that are built now, and of
 * the newest ones. Other environments begin with the bases of these.
 */
export async function savesOfVersions({ pool }: Pick<Database, 'pool'>, hostId: string): Promise<string[]> {
  const sql = `SELECT v.save_id, s.base_id FROM environment_versions v JOIN home_saves s ON s.id = v.save_id AND s.host_id = ?
    WHERE v.status = ? AND v.let_go_at IS NULL ORDER BY v.created_at DESC, v.id DESC LIMIT ${mostReady}`;
  const found = await Promise.all(
    ['building', 'ready'].map((status) => select<{ saveId: string; baseId: string }>(pool, sql, [hostId, status])),
  );
  return [...new Set(found.flat().flatMap(({ saveId, baseId }) => [saveId, baseId]))];
}
