import { ifThere } from '../../system/ifThere.ts';
import { stampOf } from '../../system/stamps.ts';
import type { CgroupRoots } from './cgroupRoots.ts';
import * as cgroup from './computerCgroup.ts';
import type { Confinement } from './confinement.ts';
import { readUsage } from './usage.ts';

/**
 * Computers in cgroups, which hold whatever a process does: nothing gets out of one, or is missed when it is killed. In
 * a sandbox that is `whole`, what belongs to the agent and what to its work is one and the same for the host.
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
    // One that was started without cgroups has none.
    settleHolder: ({ computerId, limits }) => ifThere(() => cgroup.limitHolderCpu(roots, computerId, limits)),
    freeze: ({ computerId }) => cgroup.setFrozen(roots, computerId, true),
    thaw: ({ computerId }) => cgroup.setFrozen(roots, computerId, false),
    isFrozen: ({ computerId }) => cgroup.readFrozen(roots, computerId)?.reached === true,
    kill: ({ computerId }) => cgroup.killOnce(roots, computerId),
    left: ({ computerId }) => cgroup.pidsIn(roots, computerId).flatMap((pid) => stampOf(pid) ?? []),
    remove: (computerId) => cgroup.removeComputerCgroup(roots, computerId),
    usage: ({ computerId }) => readUsage(roots, computerId),
    list: () => cgroup.listComputerCgroups(roots),
    close: () => cgroup.removeRoots(roots),
  };
}
