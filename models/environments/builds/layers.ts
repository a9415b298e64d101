import type { Transaction } from 'sequelize';
import { lockSave } from '../../computers/saveRows.ts';
import { loosen } from '../../computers/saves.ts';
import { execute, select } from '../../database/sql.ts';
import type { Version } from '../version.ts';
import { isBase, type StepRow } from './stepRows.ts';

type Step = Pick<StepRow, 'digest' | 'number'>;

/**
 * How far the steps of a build, which are in order, are kept from earlier builds: the last of them with its save, and
 * whether that is all. Without the cache, only what makes the root file system is taken from there.
 */
export async function keptSteps(
  tx: Transaction,
  { spaceId, withoutCache }: Pick<Version, 'spaceId' | 'withoutCache'>,
  steps: readonly Step[],
): Promise<{ kept: { number: number; saveId: string } | undefined; areAll: boolean }> {
  const kept = await lastKept(tx, spaceId, withoutCache ? steps.filter(isBase) : steps);
  return { kept, areAll: steps.every(({ number }) => kept !== undefined && number <= kept.number) };
}

/**
 * The last of these steps, which are in order, whose result is kept, with its save. The save is locked. That the result
 * is kept counts as used now.
 */
async function lastKept(
  tx: Transaction,
  spaceId: string,
  steps: readonly Step[],
): Promise<{ number: number; saveId: string } | undefined> {
  if (steps.length === 0) return undefined;
  const sql = 'SELECT digest, save_id FROM environment_layers WHERE space_id = ? AND digest IN (?)';
  const rows = await select<{ digest: string; saveId: string }>(tx, sql, [spaceId, steps.map(({ digest }) => digest)]);
  const saves = new Map(rows.map(({ digest, saveId }) => [digest, saveId]));
  for (const { digest, number } of steps.toReversed()) {
    const saveId = saves.get(digest);
    if (saveId === undefined || (await lockSave(tx, saveId)) === undefined) continue;
    const used = steps.filter((step) => step.number <= number).map((step) => step.digest);
    const note = 'UPDATE environment_layers SET used_at = ? WHERE space_id = ? AND digest IN (?)';
    await execute(tx, note, [new Date(), spaceId, used]);
    return { number, saveId };
  }
  return undefined;
}

/**
 * Keeps the result of a step. An earlier result of the same step stays, unless its save is gone or this build was to use
 * none. The save is locked.
 */
export async function keepLayer(
  tx: Transaction,
  { spaceId, withoutCache }: Pick<Version, 'spaceId' | 'withoutCache'>,
  digest: string,
  saveId: string,
): Promise<void> {
  const known = 'SELECT save_id FROM environment_layers WHERE space_id = ? AND digest = ? FOR UPDATE';
  const [before] = await select<{ saveId: string }>(tx, known, [spaceId, digest]);
  if (before !== undefined && !withoutCache && (await lockSave(tx, before.saveId)) !== undefined) return;
  await execute(
    tx,
    `INSERT INTO environment_layers (space_id, digest, save_id, used_at) VALUES (?)
     ON DUPLICATE KEY UPDATE save_id = VALUES(save_id), used_at = VALUES(used_at)`,
    [[spaceId, digest, saveId, new Date()]],
  );
  if (before !== undefined && before.saveId !== saveId) await loosen(tx, [before.saveId]);
}

/** Notes the save that has all of a version that is built so far. The save is locked. */
export async function noteBuilt(tx: Transaction, version: Version, saveId: string): Promise<void> {
  await execute(tx, 'UPDATE environment_versions SET save_id = ? WHERE id = ?', [saveId, version.id]);
  if (version.saveId !== null && version.saveId !== saveId) await loosen(tx, [version.saveId]);
}
