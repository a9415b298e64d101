import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../system/ifThere.ts';
import { stampOf } from '../../system/stamps.ts';
import type { ProcessUsage } from '../../types.ts';
import type { CgroupRoots } from './cgroupRoots.ts';
import * as cgroup from './computerCgroup.ts';
import type { Confinement } from './confinement.ts';

/**
 * Computers in cgroups, from which no process escapes. In a `whole` sandbox the host cannot tell the agent from its
 * work.
 */
export function cgroupConfinement(roots: CgroupRoots, kind: cgroup.BoxKind = 'apart'): Confinement {
  return {
    kind: 'cgroups',
    prepare({ computerId, uid, limits }) {
      cgroup.makeComputerCgroup(roots, computerId, limits, kind);
      return cgroup.holderCgroups(roots, computerId, uid ?? process.getuid?.() ?? 0, kind);
    },
    joinHolder: (computerId, pid) => cgroup.moveTo(roots, computerId, 'holder', [pid]),
    joinSandbox: (computerId, pids) =>
      cgroup.moveTo(roots, computerId, kind === 'apart' ? 'box/agent' : 'box/work', pids),
    // A holder that was started without cgroups has none.
    settleHolder: ({ computerId, limits }) => ifThere(() => cgroup.limitHolderCpu(roots, computerId, limits)),
    freeze: ({ computerId }) => cgroup.setFrozen(roots, computerId, true),
    thaw: ({ computerId }) => cgroup.setFrozen(roots, computerId, false),
    isFrozen: ({ computerId }) => cgroup.isFrozen(roots, computerId),
    kill: ({ computerId }) => cgroup.killOnce(roots, computerId),
    left: ({ computerId }) => cgroup.pidsIn(roots, computerId).flatMap((pid) => stampOf(pid) ?? []),
    remove: (computerId) => cgroup.removeComputerCgroup(roots, computerId),
    usage: ({ computerId }) => readUsage(roots, computerId),
    list: () => cgroup.listComputerCgroups(roots),
    close: () => cgroup.removeRoots(roots),
  };
}

const numberIn = (file: string) => Number(ifThere(() => readFileSync(file, 'utf8')) ?? 0);

const field = (file: string, name: string) =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(ifThere(() => readFileSync(file, 'utf8')) ?? '')?.[1] ?? 0);

/** Reads a computer's usage from its cgroups. */
export function readUsage(roots: CgroupRoots, id: string): ProcessUsage {
  const work = join(id, 'box', 'work');
  const memory = join(roots.memory, work);
  const tasks = numberIn(join(roots.pids, work, 'pids.current'));
  if (roots.version === 2) {
    return {
      cpuSeconds: field(join(roots.cpu, id, 'box', 'cpu.stat'), 'usage_usec') / 1e6,
      memoryBytes: numberIn(join(memory, 'memory.current')),
      memoryPeakBytes: numberIn(join(memory, 'memory.peak')),
      tasks,
      oomKills: field(join(memory, 'memory.events'), 'oom_kill'),
    };
  }
  return {
    cpuSeconds: numberIn(join(roots.cpuacct, id, 'box', 'cpuacct.usage')) / 1e9,
    memoryBytes: numberIn(join(memory, 'memory.usage_in_bytes')),
    memoryPeakBytes: numberIn(join(memory, 'memory.max_usage_in_bytes')),
    tasks,
    oomKills: field(join(memory, 'memory.oom_control'), 'oom_kill'),
  };
}
