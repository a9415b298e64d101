import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder for our cgroups in each v1 hierarchy. In v2 all are the same folder. */
export interface CgroupRoots {
  version: 1 | 2;
  cpu: string;
  cpuacct: string;
  memory: string;
  pids: string;
  freezer: string;
}

const controllersV1 = ['cpu', 'cpuacct', 'memory', 'pids', 'freezer'] as const;
const controllersV2 = ['cpu', 'memory', 'pids'];

type FoundRoots = { roots: CgroupRoots } | { missing: string };

/**
 * Finds this machine's cgroups by `/proc/self/mountinfo`. Our folders are at the top of each hierarchy: if they were
 * below our own cgroup, a service manager that stops us would end the computers too.
 */
export function findCgroups(mountinfo: string, name: string): FoundRoots {
  const mounts = mountinfo.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [type = '', , options = ''] = after.split(' ');
    const path = before.split(' ')[4];
    return path !== undefined && type.startsWith('cgroup') ? [{ path, type, options: options.split(',') }] : [];
  });
  const v1 = controllersV1.map((controller) =>
    mounts.find(({ type, options }) => type === 'cgroup' && options.includes(controller)),
  );
  if (v1.every((mount) => mount !== undefined)) {
    const [cpu, cpuacct, memory, pids, freezer] = v1.map((mount) => join(mount?.path ?? '', name));
    return { roots: { version: 1, cpu, cpuacct, memory, pids, freezer } as CgroupRoots };
  }
  for (const { path } of mounts.filter(({ type }) => type === 'cgroup2')) {
    const available = readFileSync(join(path, 'cgroup.controllers'), 'utf8').trim().split(' ');
    if (!controllersV2.every((controller) => available.includes(controller))) continue;
    const root = join(path, name);
    return { roots: { version: 2, cpu: root, cpuacct: root, memory: root, pids: root, freezer: root } };
  }
  return { missing: 'this machine has no cgroups that limit cpu, memory and pids' };
}

/** Makes the folders, or says why it cannot. The usual reason is a container with read-only cgroups. */
export function makeRoots(roots: CgroupRoots): { missing: string } | undefined {
  try {
    if (roots.version === 2) enableControllers(join(roots.memory, '..'));
    for (const root of folders(roots)) mkdirSync(root, { recursive: true, mode: 0o755 });
    if (roots.version === 2) enableControllers(roots.memory);
    return undefined;
  } catch (error) {
    const { code = 'unknown error', path = roots.memory } = error as NodeJS.ErrnoException;
    return { missing: `cgroups cannot be written (${path}: ${code})` };
  }
}

/** The folders without duplicates. */
export const folders = ({ version: _, ...roots }: CgroupRoots): string[] => [...new Set(Object.values(roots))];

export function enableControllers(folder: string): void {
  const file = join(folder, 'cgroup.subtree_control');
  const enabled = existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ') : [];
  const lacking = controllersV2.filter((controller) => !enabled.includes(controller));
  if (lacking.length > 0) writeFileSync(file, lacking.map((controller) => `+${controller}`).join(' '));
}
