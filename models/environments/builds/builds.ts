import type { Transaction } from 'sequelize';
import { DomainError } from '../../../base/errors.ts';
import { lockLivingSpace } from '../../audit/livingSpace.ts';
import type { Computer } from '../../computers/computer.ts';
import { insertComputer, lockAnyComputer } from '../../computers/computers.ts';
import { roomFor } from '../../computers/quotas.ts';
import { transaction } from '../../database/database.ts';
import { execute, select } from '../../database/sql.ts';
import { type Waiting, waitingIn } from '../../sweeping/oldestFirst.ts';
import type { EnvironmentDeps } from '../environment.ts';
import { builderOf, findVersion, lockVersion, type Version } from '../version.ts';
import { endBuild } from './endBuild.ts';
import { keptSteps, noteBuilt } from './layers.ts';
import { hostForImages, isUnresolved } from './resolving.ts';
import { stepRows } from './stepRows.ts';

/** What the workflow of a build does next. */
export type BuildStep =
  | { do: 'rest'; badEnd?: { status: 'failed' | 'cancelled'; code: string | null } }
  /** Asks the registry for the image that the build begins with. */
  | { do: 'resolve'; hostId: string }
  | { do: 'run'; number: number }
  | { do: 'save'; number: number; hostId: string };

/**
 * Looks at a build: makes its computer, records what has become of it, and decides the next step. The decision is in the
 * rows, so asking again gives the same step.
 */
export async function nextOfBuild(deps: EnvironmentDeps, versionId: string): Promise<BuildStep> {
  const { database } = deps;
  const seen = await findVersion(database.pool, versionId);
  if (seen === undefined) return { do: 'rest' };
  if (seen.status !== 'building') return restOf(seen);
  if (isUnresolved(seen)) {
    const hostId = await hostForImages(deps);
    if (hostId !== undefined) return { do: 'resolve', hostId };
    await failBuild(deps, versionId, 'ENVIRONMENTS_UNAVAILABLE');
    return restOf(await findVersion(database.pool, versionId));
  }
  try {
    await transaction(database, (tx) => prepare(deps, tx, seen));
  } catch (error) {
    // There is no room for the computer, or the space was deleted.
    if (!(error instanceof DomainError)) throw error;
    await failBuild(deps, versionId, error.code);
  }
  return transaction(database, async (tx) => {
    // The computer is locked before the version, as everywhere.
    const builder = await lockAnyComputer(tx, builderOf(seen).computerId);
    const version = await lockVersion(tx, versionId);
    return version?.status === 'building' ? decide(deps, tx, version, builder) : restOf(version);
  });
}

function restOf(version: Version | undefined): BuildStep {
  const status = version?.status;
  if (status !== 'failed' && status !== 'cancelled') return { do: 'rest' };
  return { do: 'rest', badEnd: { status, code: version?.errorCode ?? null } };
}

/** Skips the steps that are kept from earlier builds, and makes the computer for the others. Once for a build. */
async function prepare({ config }: EnvironmentDeps, tx: Transaction, seen: Version): Promise<void> {
  const { id, spaceId } = seen;
  const builder = builderOf(seen).computerId;
  await lockLivingSpace(tx, spaceId);
  const isMade = (await lockAnyComputer(tx, builder)) !== undefined;
  const version = await lockVersion(tx, id);
  const steps = await stepRows(tx, [id]);
  const isNew = steps.every(({ status, startedAt }) => status === 'waiting' && startedAt === null);
  if (isMade || version?.status !== 'building' || !isNew) return;
  const { kept, areAll } = await keptSteps(tx, version, steps);
  if (kept !== undefined) {
    await noteBuilt(tx, version, kept.saveId);
    const sql = "UPDATE environment_steps SET status = 'kept' WHERE version_id = ? AND number <= ?";
    await execute(tx, sql, [id, kept.number]);
  }
  if (areAll) return;
  await roomFor(tx, { spaceId, id: builder }, {}, config);
  const sql = 'SELECT name FROM environments WHERE id = ?';
  const [environment] = await select<{ name: string }>(tx, sql, [version.environmentId]);
  const homeSaveId = kept?.saveId ?? version.saveId;
  const row = {
    name: `Build of ${environment?.name} v${version.number}`,
    base: 'debian',
    image: version.image,
    homeSaveId,
    hasDrive: false,
  };
  await insertComputer(tx, { id: builder, spaceId, createdBy: version.createdBy, row });
}

async function decide(
  deps: EnvironmentDeps,
  tx: Transaction,
  version: Version,
  builder: Computer | undefined,
): Promise<BuildStep> {
  const next = (await stepRows(tx, [version.id])).find(({ status }) => status !== 'done' && status !== 'kept');
  if (next === undefined) {
    await endBuild(deps, tx, version, { status: 'ready' });
    return { do: 'rest' };
  }
  const fail = async (code: string): Promise<BuildStep> => {
    await endBuild(deps, tx, version, { status: 'failed', code });
    return { do: 'rest', badEnd: { status: 'failed', code } };
  };
  if (builder === undefined || builder.deletedAt !== null) return fail('BUILDER_DELETED');
  const { number } = next;
  if (next.status !== 'ran') return { do: 'run', number };
  if (builder.hostId === null || builder.generation !== next.generation) return fail('BUILD_INTERRUPTED');
  return { do: 'save', number, hostId: builder.hostId };
}

/** Notes why the computer of a build cannot run yet. Returns whether that is news. */
export async function noteBuildWaits(
  { database }: Pick<EnvironmentDeps, 'database'>,
  versionId: string,
  code: string,
): Promise<boolean> {
  return transaction(database, async (tx) => {
    const version = await lockVersion(tx, versionId);
    if (version?.status !== 'building' || version.waitsFor === code) return false;
    await setWaitsFor(tx, versionId, code);
    return true;
  });
}

/** Notes why the computer of a build that is locked cannot run yet. Null: it runs. */
export async function setWaitsFor(tx: Transaction, versionId: string, code: string | null): Promise<void> {
  await execute(tx, 'UPDATE environment_versions SET waits_for = ? WHERE id = ?', [code, versionId]);
}

/** Ends a build that cannot go on. One that has waited for too long tells what it waited for. */
export async function failBuild(deps: EnvironmentDeps, versionId: string, code: string): Promise<void> {
  await transaction(deps.database, async (tx) => {
    const version = await lockVersion(tx, versionId);
    if (version?.status !== 'building') return;
    const told = code === 'BUILD_FORBIDDEN' ? code : (version.waitsFor ?? code);
    await endBuild(deps, tx, version, { status: 'failed', code: told });
  });
}

export async function cancelBuild(deps: EnvironmentDeps, versionId: string): Promise<void> {
  await transaction(deps.database, async (tx) => {
    const version = await lockVersion(tx, versionId);
    if (version?.status === 'building') await endBuild(deps, tx, version, { status: 'cancelled' });
  });
}

export type LostBuild = Waiting & { isCancelled: number };

/** Builds whose operation has ended without them, as when an operator ends its workflow. */
export const lostBuilds = waitingIn<LostBuild>({
  table: 'environment_versions v',
  joins: "JOIN operations o ON o.id = v.operation_id AND o.status <> 'running'",
  id: 'v.id',
  columns: ["o.status = 'cancelled' AS is_cancelled"],
  where: "v.status = 'building'",
  time: 'v.created_at',
});
