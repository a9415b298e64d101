import { imageNameOf } from '../../../base/imageNames.ts';
import { hasBase, isLost, listHosts } from '../../computers/hosts.ts';
import { type Database, transaction } from '../../database/database.ts';
import { execute } from '../../database/sql.ts';
import { filesIn } from '../copiedFiles.ts';
import type { EnvironmentDeps } from '../environment.ts';
import { beginWith, type ResolvedImage } from '../images.ts';
import { type CopiedFiles, noSetting, planOf } from '../steps.ts';
import { findVersion, lockVersion, type Version } from '../version.ts';
import { fromNothing, insertPlan } from './planRows.ts';
import { planOfStep, stepRows } from './stepRows.ts';

const mostWarnings = 200;

/** Whether a build begins with an image of which only its registry knows yet what it is. */
export function isUnresolved({ base, image }: Pick<Version, 'base' | 'image'>): boolean {
  return image === null && imageNameOf(base) !== undefined;
}

/** A host that can ask registries. Undefined if none can now. */
export async function hostForImages({ database, config }: EnvironmentDeps): Promise<string | undefined> {
  return (await listHosts(database)).find((host) => !isLost(host, config) && hasBase(host, 'image'))?.id;
}

/** The image that a build still has to know. */
export async function imageToResolve({ pool }: Pick<Database, 'pool'>, versionId: string): Promise<string | undefined> {
  const version = await findVersion(pool, versionId);
  return version?.status === 'building' && isUnresolved(version) ? version.base : undefined;
}

/**
 * Notes what a registry says of the image that a build begins with. From here on the build depends on this content only:
 * the image's own settings become its first steps, and the digests of all steps follow from it.
 */
export async function noteImage(database: Database, versionId: string, resolved: ResolvedImage): Promise<void> {
  await transaction(database, async (tx) => {
    const version = await lockVersion(tx, versionId);
    const name = version && imageNameOf(version.base);
    if (version?.status !== 'building' || name === undefined || version.image !== null) return;
    const { image, origin, steps: first, warnings } = beginWith(name, resolved);
    const steps = [...first, ...version.steps];
    const files = new Map<string, CopiedFiles>();
    for (const row of await stepRows(tx, [versionId])) {
      const { plan, files: copied } = await planOfStep(tx, row);
      if ('copy' in plan.step) files.set(plan.step.copy.from, copied);
    }
    const { work, end } = planOf(noSetting, steps);
    await execute(tx, 'DELETE FROM environment_steps WHERE version_id = ?', [versionId]);
    const plan = fromNothing('image', { work, origin, filesOf: filesIn(files) });
    await insertPlan(tx, { versionId, spaceId: version.spaceId }, plan);
    const { env, user: userName, workdir } = end;
    const row = { image, steps, warnings: warnings.slice(0, mostWarnings), env, userName, workdir };
    await execute(tx, 'UPDATE environment_versions SET ? WHERE id = ?', [row, versionId]);
  });
}
