import { getComputer } from '../../models/computers/computer.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';

type Use = NonNullable<AnswerOf<'getComputerMetrics'>['use']>;

const mebibyte = 1_048_576;

/** What computers use. */
export function metricsRoutes(deps: Pick<RouteDeps, 'database' | 'hostOf'>) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/computers/:computerId/metrics', async (req, res) => {
    const { spaceId, computerId } = pathOf<'getComputerMetrics'>(req);
    const { status, hostId } = await getComputer(deps.database, spaceId, computerId);
    const runs = hostId !== null && (status === 'running' || status === 'paused');
    const use = runs ? await measure(computerId, hostId) : null;
    answer<'getComputerMetrics'>(res, 200, { computerId, status, use });
  });

  async function measure(computerId: string, hostId: string): Promise<Use> {
    const metrics = await (await deps.hostOf(hostId)).metrics(computerId);
    const inMiB = (bytes: number) => Math.round((bytes / mebibyte) * 100) / 100;
    return {
      cpuSeconds: metrics.cpuSeconds,
      memoryMiB: inMiB(metrics.memoryBytes),
      memoryPeakMiB: inMiB(metrics.memoryPeakBytes),
      tasks: metrics.tasks,
      diskMiB: inMiB(metrics.diskBytes),
      logsMiB: inMiB(metrics.logBytes),
      oomKills: metrics.oomKills,
    };
  }

  return router;
}
