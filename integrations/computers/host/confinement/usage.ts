import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../system/ifThere.ts';
import type { CgroupRoots } from './cgroupRoots.ts';
import type { ProcessUsage } from './confinement.ts';

const numberIn = (file: string) => Number(ifThere(() => readFileSync(file, 'utf8')) ?? 0);

const field = (file: string, name: string) =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(ifThere(() => readFileSync(file, 'utf8')) ?? '')?.[1] ?? 0);

/** What a computer uses, by its cgroups. */
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
