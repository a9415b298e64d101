import { transaction } from '../../database/database.ts';
import type { EnvironmentDeps } from '../environment.ts';
import { findVersion, lockVersion, type Version } from '../version.ts';
import { setWaitsFor } from './builds.ts';
import { endBuild } from './endBuild.ts';
import { countLog } from './keptLogs.ts';
import { changeStep, stepRows } from './stepRows.ts';

type Deps = Pick<EnvironmentDeps, 'database'>;

interface Which {
  versionId: string;
  number: number;
}

/** A step that is to be run, and the start of the computer in which a worker has begun it. */
export async function stepToRun(
  { database }: Deps,
  { versionId, number }: Which,
): Promise<{ version: Version; isBegun: boolean; generation: number | null } | undefined> {
  const version = await findVersion(database.pool, versionId);
  const row = (await stepRows(database.pool, [versionId])).find((one) => one.number === number);
  if (version?.status !== 'building' || row === undefined) return undefined;
  const { status, generation } = row;
  if (status !== 'waiting' && status !== 'running') return undefined;
  return { version, isBegun: status === 'running', generation };
}

/**
 * Notes that a step begins now, in this start of its computer, unless another worker has begun it meanwhile. Returns the
 * start of the computer in which it runs. Undefined if it is done by now, or the build has ended: a worker that was held
 * up must not run it again.
 */
export async function noteStepBegun(
  { database }: Deps,
  { versionId, number, generation }: Which & { generation: number },
): Promise<number | undefined> {
  return transaction(database, async (tx) => {
    const version = await lockVersion(tx, versionId);
    const step = (await stepRows(tx, [versionId])).find((one) => one.number === number);
    if (version?.status !== 'building') return undefined;
    if (step?.status === 'running') return step.generation ?? undefined;
    if (step?.status !== 'waiting') return undefined;
    await changeStep(tx, step, { status: 'running', generation, startedAt: new Date() });
    if (version.waitsFor !== null) await setWaitsFor(tx, versionId, null);
    return generation;
  });
}

/** How a step ended. With a `code`, it failed, and so does the build. */
export interface StepEnd {
  exitCode: number | null;
  code?: string | undefined;
  logBytes: number;
  sealedLog: Buffer | null;
  sealedTail: Buffer | null;
}

export async function noteStepEnd(
  deps: EnvironmentDeps,
  { versionId, number }: Which,
  { code, ...end }: StepEnd,
): Promise<void> {
  await transaction(deps.database, async (tx) => {
    const version = await lockVersion(tx, versionId);
    const step = (await stepRows(tx, [versionId])).find((one) => one.number === number);
    if (version?.status !== 'building' || step?.status !== 'running') return;
    const status = code === undefined ? 'ran' : 'failed';
    await changeStep(tx, step, { ...end, status, endedAt: new Date() });
    await countLog(tx, version, (end.sealedLog?.length ?? 0) + (end.sealedTail?.length ?? 0));
    if (code !== undefined) await endBuild(deps, tx, version, { status: 'failed', code });
  });
}
