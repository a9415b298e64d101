import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCgroups } from '../../host/confinement/cgroupRoots.ts';
import { ifThere } from '../../system/ifThere.ts';

/**
 * Where the kernel counts what it has ended in a container for want of memory. Undefined where the engine’s machine is
 * not this one, whatever number the container’s first process has there.
 */
export function oomFileOf({ id, pid }: { id: string; pid: number }): string | undefined {
  const list = ifThere(() => readFileSync(`/proc/${pid}/cgroup`, 'utf8'));
  const found = findCgroups(readFileSync('/proc/self/mountinfo', 'utf8'), '.');
  if (list === undefined || 'missing' in found) return undefined;
  const { version, memory } = found.roots;
  const lines = list.split('\n').map((line) => line.split(':'));
  const own = lines.find(([, controllers = '']) => controllers.split(',').includes(version === 2 ? '' : 'memory'));
  const path = own?.slice(2).join(':') ?? '';
  const file = join(memory, path, version === 2 ? 'memory.events' : 'memory.oom_control');
  return path.includes(id) && existsSync(file) ? file : undefined;
}
