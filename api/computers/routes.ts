import { type Computer, getComputer, limitsOf, listComputers } from '../../models/computers/computer.ts';
import type { ComputerFields } from '../../models/computers/computers.ts';
import { defaultComputer } from '../../models/computers/defaultComputer.ts';
import { askForSystem } from '../../models/computers/newSystem.ts';
import { useOf } from '../../models/computers/quotas.ts';
import { detailOf } from '../../models/computers/reasons.ts';
import { settingOf } from '../../models/computers/systems.ts';
import { type UsedEnvironment, usedEnvironments } from '../../models/environments/used.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { doneOrLater } from '../frame/operationAnswer.ts';
import { type BodyOf, bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';

/** Computers of a space. Routes that change whether they run are in lifeRoutes.ts. */
export function computerRoutes(deps: RouteDeps) {
  const { computers, config, database } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/computers', async (req, res) => {
    const { spaceId } = pathOf<'listComputers'>(req);
    const { data, nextCursor } = await listComputers(database, spaceId, pageOf(req));
    answer<'listComputers'>(res, 200, { data: await presentComputers(deps, data), nextCursor });
  });

  router.post('/api/spaces/:spaceId/computers', async (req, res) => {
    const { spaceId } = pathOf<'createComputer'>(req);
    const fields = fieldsOf(bodyOf<'createComputer'>(req));
    await makeOnce<'createComputer'>(deps, req, res, 'computer', async (id) =>
      presentComputer(deps, await computers.create(spaceId, id, fields, actorOf(req))),
    );
  });

  router.get('/api/spaces/:spaceId/computers/status', async (req, res) => {
    const { spaceId } = pathOf<'getComputerStatus'>(req);
    const { id, status } = await defaultComputer(database, spaceId);
    answer<'getComputerStatus'>(res, 200, { status, computerId: id });
  });

  router.get('/api/spaces/:spaceId/computers/usage', async (req, res) => {
    const { spaceId } = pathOf<'getComputerUsage'>(req);
    answer<'getComputerUsage'>(res, 200, {
      used: await useOf(database, spaceId, config),
      limits: config.computers.perSpace,
    });
  });

  router.get('/api/spaces/:spaceId/computers/:computerId', async (req, res) => {
    const { spaceId, computerId } = pathOf<'getComputer'>(req);
    answer<'getComputer'>(res, 200, await presentComputer(deps, await getComputer(database, spaceId, computerId)));
  });

  router.patch('/api/spaces/:spaceId/computers/:computerId', async (req, res) => {
    const { spaceId, computerId } = pathOf<'updateComputer'>(req);
    const { environmentId, environmentVersion, ...body } = bodyOf<'updateComputer'>(req);
    const actor = actorOf(req);
    if (Object.keys(body).length > 0) await computers.update(spaceId, computerId, fieldsOf(body), actor);
    if (environmentId !== undefined) {
      const asked = await askForSystem(deps, { spaceId, computerId, environmentId, environmentVersion, actor });
      if (!(await doneOrLater(deps, req, res, asked.operation))) return;
    }
    const computer = await getComputer(database, spaceId, computerId);
    answer<'updateComputer'>(res, 200, await presentComputer(deps, computer));
  });

  return router;
}

function fieldsOf({ cpu, drive, ...rest }: BodyOf<'createComputer'>): ComputerFields {
  return {
    ...rest,
    ...(cpu !== undefined && { cpuMilli: Math.round(cpu * 1_000) }),
    ...(drive !== undefined && { hasDrive: drive }),
  };
}

type Use = NonNullable<AnswerOf<'getComputerMetrics'>['use']>;

const mebibyte = 1_048_576;

/** The use of a computer. */
export function metricsRoutes(deps: Pick<RouteDeps, 'database' | 'hostOf'>) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/computers/:computerId/metrics', async (req, res) => {
    const { spaceId, computerId } = pathOf<'getComputerMetrics'>(req);
    const computer = await getComputer(deps.database, spaceId, computerId);
    const { status, hostId } = computer;
    const runs = hostId !== null && (status === 'running' || status === 'paused');
    const use = runs ? await measure(computer, hostId) : null;
    answer<'getComputerMetrics'>(res, 200, { computerId, status, use });
  });

  async function measure(computer: Computer, hostId: string): Promise<Use> {
    const metrics = await (await deps.hostOf(hostId)).metrics(computer.id);
    const { systemMiB } = await settingOf(deps.database, computer);
    const inMiB = (bytes: number) => Math.round((bytes / mebibyte) * 100) / 100;
    return {
      cpuSeconds: metrics.cpuSeconds,
      memoryMiB: inMiB(metrics.memoryBytes),
      memoryPeakMiB: inMiB(metrics.memoryPeakBytes),
      tasks: metrics.tasks,
      diskMiB: inMiB(metrics.diskBytes),
      systemMiB,
      logsMiB: inMiB(metrics.logBytes),
      oomKills: metrics.oomKills,
    };
  }

  return router;
}

type PresentDeps = Pick<RouteDeps, 'config' | 'database'>;

export async function presentComputer(deps: PresentDeps, computer: Computer): Promise<AnswerOf<'getComputer'>> {
  const [shown] = await presentComputers(deps, [computer]);
  return shown as AnswerOf<'getComputer'>;
}

export async function presentComputers(
  { config, database }: PresentDeps,
  computers: readonly Computer[],
): Promise<AnswerOf<'getComputer'>[]> {
  const used = await usedEnvironments(database, computers);
  return computers.map((computer, index) => present(computer, used[index] ?? null, config));
}

function present(
  computer: Computer,
  environment: UsedEnvironment | null,
  config: RouteDeps['config'],
): AnswerOf<'getComputer'> {
  const { id, spaceId, name, defaultOf, status, errorCode, errorDetail, labels, envNames, generation } = computer;
  const failed = computer.homeSaveFailed;
  const { cpuMilli, ...limits } = limitsOf(computer, config);
  return {
    id,
    spaceId,
    name,
    isDefault: defaultOf !== null,
    status,
    error: errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' },
    cpu: cpuMilli / 1_000,
    ...limits,
    labels,
    envNames,
    generation,
    forkedFrom: computer.forkedFrom,
    createdBy: computer.createdBy,
    createdAt: time(computer.createdAt),
    startedAt: computer.startedAt === null ? null : time(computer.startedAt),
    statusAt: time(computer.statusAt),
    homeSavedAt: computer.homeSavedAt === null ? null : time(computer.homeSavedAt),
    homeSaveError: failed === null ? null : { code: failed, detail: detailOf(failed) },
    base: computer.base,
    environment,
    drive: presentDrive(computer),
  };
}

const notMounted =
  'The drive is not there. If it was switched on while the computer ran, it comes with the next start.';

function presentDrive({ status, hasDrive, driveReport }: Computer): AnswerOf<'getComputer'>['drive'] {
  const runs = status === 'running' || status === 'paused';
  const { pendingFiles = 0, access = null, error = null } = driveReport ?? {};
  if (!hasDrive || !runs) return { state: 'off', access: null, pendingFiles, error };
  if (access === null) return { state: 'unavailable', access, pendingFiles, error: error ?? notMounted };
  return { state: 'on', access, pendingFiles, error };
}
