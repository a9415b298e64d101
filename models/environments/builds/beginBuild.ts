import type { Transaction } from 'sequelize';
import { DomainError } from '../../../base/errors.ts';
import { apiKeyIdOf } from '../../audit/audit.ts';
import { requireBaseOffered } from '../../computers/hosts.ts';
import { roomFor } from '../../computers/quotas.ts';
import { lockSave } from '../../computers/saveRows.ts';
import { insert, select } from '../../database/sql.ts';
import { operationModels } from '../../operations/operation.ts';
import { originOf } from '../bases.ts';
import { filesIn } from '../copiedFiles.ts';
import type { Environment, EnvironmentActor, EnvironmentDeps } from '../environment.ts';
import { imageOf } from '../images.ts';
import { type CopiedFiles, planOf } from '../steps.ts';
import { builderOf, findVersion } from '../version.ts';
import { keptSteps } from './layers.ts';
import { fromNothing, insertPlan } from './planRows.ts';

/**
 * Orders the build of a new version of an environment, which its operation does. Everything that the build depends on is
 * in its rows from here on, except for an image, which its registry is asked for first. The space is locked. Returns
 * false for a known version. Throws 409 `ENVIRONMENT_BUILDING`, `ENVIRONMENT_NOT_READY` or `TOO_MANY_VERSIONS`, and
 * `TOO_MANY_COMPUTERS` or `TOO_MUCH_DISK` if it needs a computer, 422 `ENVIRONMENT_BASE_UNKNOWN` or
 * `IMAGE_REGISTRY_NOT_ALLOWED`, 503 `ENVIRONMENTS_UNAVAILABLE`.
 */
export async function beginBuild(
  { database, config }: EnvironmentDeps,
  tx: Transaction,
  request: {
    versionId: string;
    environment: Pick<Environment, 'id' | 'spaceId' | 'base' | 'steps'>;
    files: ReadonlyMap<string, CopiedFiles>;
    withoutCache?: boolean;
    actor: EnvironmentActor;
  },
): Promise<boolean> {
  const { versionId, environment, files, withoutCache = false, actor } = request;
  const { id: environmentId, spaceId, base } = environment;
  if ((await findVersion(tx, versionId)) !== undefined) return false;
  const isImage = imageOf(base, config) !== undefined;
  await requireBaseOffered(database, isImage ? 'image' : 'debian', config);
  await requireNotBuilding(tx, environmentId);
  await requireRoom(tx, spaceId, config);
  const origin = await originOf(tx, config, spaceId, base);
  if (origin.saveId !== null) await lockSave(tx, origin.saveId);
  const steps = [...origin.steps, ...environment.steps];
  const { work, end } = planOf(origin.setting, steps);
  const operation = await operationModels(tx).Operation.begin(
    { kind: 'buildEnvironment', spaceId, userId: actor.userId, subjectId: versionId },
    tx,
  );
  await insert(tx, 'environment_versions', {
    id: versionId,
    spaceId,
    environmentId,
    number: await nextNumber(tx, environmentId),
    status: 'building',
    base,
    steps,
    withoutCache,
    saveId: origin.saveId,
    env: end.env,
    userName: end.user,
    workdir: end.workdir,
    operationId: operation.id,
    createdBy: actor.userId,
    apiKeyId: apiKeyIdOf(actor),
    createdAt: new Date(),
  });
  const own = { work, origin: origin.name, filesOf: filesIn(files) };
  const plan = origin.saveId === null ? fromNothing(isImage ? 'image' : 'debian', own) : own;
  const rows = await insertPlan(tx, { versionId, spaceId }, plan);
  // Whether a build of an image needs a computer is known once its registry has said what it is.
  if (!isImage && !(await keptSteps(tx, { spaceId, withoutCache }, rows)).areAll) {
    await roomFor(tx, { spaceId, id: builderOf({ id: versionId, spaceId }).computerId }, {}, config);
  }
  return true;
}

/** Throws 409 `ENVIRONMENT_BUILDING`. */
export async function requireNotBuilding(tx: Transaction, environmentId: string): Promise<void> {
  const sql = "SELECT id FROM environment_versions WHERE environment_id = ? AND status = 'building'";
  if ((await select(tx, sql, [environmentId])).length === 0) return;
  const detail = 'A version of the environment is being built. Wait for its operation, or cancel it.';
  throw new DomainError('conflict', 'ENVIRONMENT_BUILDING', detail, { retryAfterSeconds: 30 });
}

async function requireRoom(
  tx: Transaction,
  spaceId: string,
  { environments }: Pick<EnvironmentDeps['config'], 'environments'>,
): Promise<void> {
  const sql = `SELECT COUNT(*) AS count FROM environment_versions v JOIN environments e
    ON e.id = v.environment_id AND e.deleted_at IS NULL WHERE v.space_id = ?`;
  const [row] = await select<{ count: number }>(tx, sql, [spaceId]);
  const [limit, used] = [environments.versionsPerSpace, row?.count ?? 0];
  if (used < limit) return;
  const detail = `A space has at most ${limit} versions of environments, and this one has ${used}. Delete an environment first.`;
  throw new DomainError('conflict', 'TOO_MANY_VERSIONS', detail, { quota: { limit, used } });
}

async function nextNumber(tx: Transaction, environmentId: string): Promise<number> {
  const sql = 'SELECT MAX(number) AS newest FROM environment_versions WHERE environment_id = ?';
  const [row] = await select<{ newest: number | null }>(tx, sql, [environmentId]);
  return (row?.newest ?? 0) + 1;
}
