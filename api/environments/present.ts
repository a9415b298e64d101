import { ownSteps, type StepRow, sealedOutput } from '../../models/environments/builds/stepRows.ts';
import type { Environment } from '../../models/environments/environment.ts';
import { detailOfBuild } from '../../models/environments/reasons.ts';
import type { EnvironmentStep } from '../../models/environments/steps.ts';
import { latestVersions, type Version } from '../../models/environments/version.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { time } from '../frame/times.ts';

type Deps = Pick<RouteDeps, 'database' | 'sealedLogs'>;
type Shown = AnswerOf<'getEnvironment'>;
type ShownVersion = Shown['latest'];

/** As a space sees it. */
export async function presentEnvironment(deps: Deps, environment: Environment, spaceId: string): Promise<Shown> {
  const [shown] = await presentEnvironments(deps, [environment], spaceId);
  if (shown === undefined) throw new Error(`The environment ${environment.id} has no version.`);
  return shown;
}

/** An environment always has a version. */
export async function presentEnvironments(
  deps: Deps,
  environments: readonly Environment[],
  spaceId: string,
): Promise<Shown[]> {
  const ids = environments.map(({ id }) => id);
  const latest = await latestVersions(deps.database, ids);
  const versions = await presentVersions(deps, [...latest.values()], spaceId);
  const shownOf = new Map([...latest.keys()].map((id, index) => [id, versions[index]]));
  return environments.flatMap(({ createdAt, ...environment }) => {
    const version = shownOf.get(environment.id);
    if (version === undefined) return [];
    const { status, number } = version;
    return [{ ...environment, status, version: number, latest: version, createdAt: time(createdAt) }];
  });
}

/** What a failed step put out is shown to the space of the environment only, like its logs. */
export async function presentVersions(
  deps: Deps,
  versions: readonly Version[],
  spaceId: string,
): Promise<ShownVersion[]> {
  const ids = versions.map(({ id }) => id);
  const rows = Map.groupBy(await ownSteps(deps.database.pool, ids), ({ versionId }) => versionId);
  return Promise.all(
    versions.map((version) => {
      const isOwn = version.spaceId === spaceId;
      return presentVersion(deps, version, rows.get(version.id) ?? [], isOwn);
    }),
  );
}

async function presentVersion(
  deps: Deps,
  version: Version,
  rows: readonly StepRow[],
  isOwn: boolean,
): Promise<ShownVersion> {
  const { number, base, image, steps, warnings, errorCode, waitsFor, homeBytes } = version;
  const { operationId, createdBy, createdAt, endedAt } = version;
  const failed = rows.find((row) => row.status === 'failed');
  return {
    number,
    status: statusOf(version),
    base,
    image,
    steps: steps.map((step, index) => presentStep(step, index + 1, version, rows)),
    error: errorCode === null ? null : { code: errorCode, detail: detailOfBuild(errorCode) },
    waitsFor: waitsFor === null ? null : { code: waitsFor, detail: detailOfBuild(waitsFor) },
    failedStep: isOwn && version.status === 'failed' && failed !== undefined ? await presentFailed(deps, failed) : null,
    warnings,
    sizeBytes: version.status === 'ready' ? homeBytes : null,
    operationId,
    createdBy,
    startedAt: time(createdAt),
    endedAt: endedAt === null ? null : time(endedAt),
  };
}

/** A build whose computer cannot run yet is queued. */
function statusOf({ status, waitsFor }: Version): ShownVersion['status'] {
  return status === 'building' && waitsFor !== null ? 'queued' : status;
}

function presentStep(
  step: EnvironmentStep,
  number: number,
  { status }: Version,
  rows: readonly StepRow[],
): ShownVersion['steps'][number] {
  const row = rows.find((one) => one.number === number);
  // A step that runs nothing.
  if (row === undefined) {
    const isPast = status === 'ready' || rows.some((later) => later.number > number && later.status !== 'waiting');
    return { number, step, status: isPast ? 'done' : 'waiting', exitCode: null, startedAt: null, endedAt: null };
  }
  const { exitCode, startedAt, endedAt } = row;
  return {
    number,
    step,
    status: row.status === 'ran' ? 'running' : row.status,
    exitCode,
    startedAt: startedAt === null ? null : time(startedAt),
    endedAt: endedAt === null ? null : time(endedAt),
  };
}

async function presentFailed(
  { database, sealedLogs }: Deps,
  row: StepRow,
): Promise<NonNullable<ShownVersion['failedStep']>> {
  const { number, exitCode } = row;
  const sealed = await sealedOutput(database.pool, row, 'tail');
  const output = sealed === undefined ? '' : (await sealedLogs.open(row, 'tail', sealed)).toString('utf8');
  return { number, exitCode, output };
}
