import type { Transaction } from 'sequelize';
import { insert } from '../../database/sql.ts';
import { baseStep, type CopiedFiles, digestsOf, type PlannedStep } from '../steps.ts';

/** What a build does: its steps that change files, and what their results depend on. */
export interface BuildPlan {
  work: readonly PlannedStep[];
  /** Names what the first step begins with, for digests. */
  origin: string;
  filesOf: (from: string) => CopiedFiles;
}

/** The same for a build that makes a root file system first. */
export function fromNothing(base: 'debian' | 'image', plan: BuildPlan): BuildPlan {
  return { ...plan, work: [baseStep(base), ...plan.work] };
}

/** Writes the steps of a version. Returns their numbers and digests. */
export async function insertPlan(
  tx: Transaction,
  { versionId, spaceId }: { versionId: string; spaceId: string },
  { work, origin, filesOf }: BuildPlan,
): Promise<{ number: number; digest: string }[]> {
  const digests = digestsOf(origin, work, filesOf);
  const rows = work.map((step, index) => ({ ...step, digest: digests[index] ?? '' }));
  for (const { number, digest, ...plan } of rows) {
    const files = 'copy' in plan.step ? filesOf(plan.step.copy.from) : null;
    await insert(tx, 'environment_steps', { versionId, number, spaceId, digest, status: 'waiting', plan, files });
  }
  return rows.map(({ number, digest }) => ({ number, digest }));
}
