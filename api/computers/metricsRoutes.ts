import { type Computer, getComputer } from '../../models/computers/computer.ts';
import { DomainError } from '../../models/errors.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';

type Use = NonNullable<AnswerOf<'getComputerMetrics'>['use']>;

const mebibyte = 1_048_576;

/** What computers use. */
export function metricsRoutes(deps: Pick<RouteDeps, 'database' | 'hostHere'>) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/computers/:computerId/metrics', async (req, res) => {
    const { spaceId, computerId } = pathOf<'getComputerMetrics'>(req);
    const computer = await getComputer(deps.database, spaceId, computerId);
    const runs = computer.status === 'running' || computer.status === 'paused';
    const use = runs ? await whatUses(computer) : null;
    answer<'getComputerMetrics'>(res, 200, { computerId, status: computer.status, use });
  });

  async function whatUses({ id, hostId }: Computer): Promise<Use> {
    const host = deps.hostHere();
    if (host === undefined || host.hostId !== hostId) {
      const detail = 'The host of this computer cannot be reached from here.';
      throw new DomainError('unavailable', 'HOST_LOST', detail, { retryAfterSeconds: 5 });
    }
    const metrics = await host.metrics(id);
    const inMiB = (bytes: number) => Math.round((bytes / mebibyte) * 100) / 100;
    return {
      cpuSeconds: metrics.cpuSeconds,
      memoryMiB: inMiB(metrics.memoryBytes),
      memoryPeakMiB: inMiB(metrics.memoryPeakBytes),
      tasks: metrics.tasks,
      diskMiB: inMiB(metrics.diskBytes),
      oomKills: metrics.oomKills,
    };
  }

  return router;
}
