import type { Confinement } from '../../host/confinement/confinement.ts';
import type { ProcessUsage } from '../../types.ts';
import type { Engine } from './engine.ts';

export interface Containers {
  engine: Engine;
  hostId: string;
}

export const hostLabel = 'atrium.host';
export const computerLabel = 'atrium.computer';

/** Already in that state (304), absent (404), or in a state that forbids it (409). The next look tells which. */
const absentOrSo = [304, 404, 409];

export const containerName = (hostId: string, computerId: string) => `atrium-${hostId}-${computerId}`;

interface Inspected {
  State: { Paused: boolean };
}

interface Stats {
  cpu_stats?: { cpu_usage?: { total_usage?: number } };
  memory_stats?: { usage?: number; max_usage?: number };
  pids_stats?: { current?: number };
}

/** Confinement for containers. The engine confines the containers; the machine's confinement confines their holders. */
export function dockerConfinement({ engine, hostId }: Containers, machine: Confinement): Confinement {
  const pathOf = (computerId: string) => `/containers/${containerName(hostId, computerId)}`;
  const inspect = (computerId: string) => engine.askUnless<Inspected>([404], 'GET', `${pathOf(computerId)}/json`);
  return {
    kind: machine.kind,
    prepare(record) {
      machine.prepare(record);
      return null;
    },
    joinHolder: machine.joinHolder,
    joinSandbox: () => undefined,
    settleHolder: machine.settleHolder,
    async freeze({ computerId }) {
      await engine.askUnless(absentOrSo, 'POST', `${pathOf(computerId)}/pause`);
    },
    async thaw({ computerId }) {
      // Engines answer with a server error if a container is not paused.
      if ((await inspect(computerId))?.State.Paused !== true) return;
      await engine.askUnless(absentOrSo, 'POST', `${pathOf(computerId)}/unpause`);
    },
    isFrozen: async ({ computerId }) => (await inspect(computerId))?.State.Paused === true,
    kill: machine.kill,
    left: machine.left,
    async remove(computerId) {
      if (!(await machine.remove(computerId))) return false;
      // 409: the container is being removed already.
      await engine.askUnless([404, 409], 'DELETE', `${pathOf(computerId)}?force=1&v=1`);
      return (await inspect(computerId)) === undefined;
    },
    async usage({ computerId }): Promise<ProcessUsage> {
      const stats = await engine.askUnless<Stats>(
        [404, 409],
        'GET',
        `${pathOf(computerId)}/stats?stream=false&one-shot=true`,
      );
      const memoryBytes = stats?.memory_stats?.usage ?? 0;
      return {
        cpuSeconds: (stats?.cpu_stats?.cpu_usage?.total_usage ?? 0) / 1e9,
        memoryBytes,
        memoryPeakBytes: stats?.memory_stats?.max_usage ?? memoryBytes,
        tasks: stats?.pids_stats?.current ?? 0,
        oomKills: 0,
      };
    },
    async list() {
      const filters = encodeURIComponent(JSON.stringify({ label: [`${hostLabel}=${hostId}`] }));
      const found = await engine.ask<{ Labels: Record<string, string> }[]>(
        'GET',
        `/containers/json?all=1&filters=${filters}`,
      );
      return found.flatMap(({ Labels }) => Labels[computerLabel] ?? []);
    },
    close: () => undefined,
  };
}
