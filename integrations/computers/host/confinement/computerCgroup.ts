import { chownSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HolderCgroups } from '../../protocol/holderSpec.ts';
import { ifThere } from '../../system/ifThere.ts';
import type { ComputerLimits } from '../../types.ts';
import type { HostLimits } from '../machine/machine.ts';
import { type CgroupRoots, enableControllers, folders } from './cgroupRoots.ts';

/** Tasks of the sandbox itself on top of the computer's limit: bwrap, the agent's threads, and processes that start. */
export const agentTasks = ({ maxProcesses }: Pick<ComputerLimits, 'maxProcesses'>) => 32 + maxProcesses;
const agentMemoryMiB = 128;
/** The holder reads a computer's output, so its memory is bounded too. */
const holderMemoryMiB = 512;
const leastHolderMilli = 250;
const leastSocketsMiB = 32;
/** Memory for gVisor's kernel and its view of the home's files. */
const sentryMemoryMiB = 128;
const sentryTasks = 256;
const periodUs = 100_000;
/** Some v1 kernels lack this file. */
export const socketLimit = 'memory.kmem.tcp.limit_in_bytes';

/** `apart`: the agent and its work have separate cgroups. `whole`: the cgroup `work` has both. */
export type BoxKind = 'apart' | 'whole';

/**
 * The cgroups of one computer: `holder`, and `box` with everything inside the sandbox. In `box`, `agent` is apart from
 * `work`, so that neither a fork bomb nor the OOM killer hits the agent. Freezing acts on `box`.
 */
const leaves = ['holder', join('box', 'agent'), join('box', 'work')];

const inMiB = (mebibytes: number) => String(mebibytes * 1024 * 1024);

export function makeComputerCgroup(roots: CgroupRoots, id: string, limits: ComputerLimits, kind: BoxKind): void {
  for (const root of folders(roots)) {
    for (const path of ['', 'box', ...leaves]) mkdirSync(join(root, id, path), { recursive: true, mode: 0o755 });
  }
  if (roots.version === 2) for (const path of ['', 'box']) enableControllers(join(roots.memory, id, path));
  setCpu(roots, join(id, 'box'), Math.max(1_000, limits.cpuMilli * (periodUs / 1_000)));
  setMemory(roots, join(id, 'holder'), holderMemoryMiB);
  setMemory(roots, join(id, 'box', 'agent'), agentMemoryMiB);
  const { memoryMiB, maxTasks } = kind === 'apart' ? limits : wholeLimits(limits);
  setMemory(roots, join(id, 'box', 'work'), memoryMiB);
  setSocketMemory(roots, join(id, 'box', 'agent'), leastSocketsMiB);
  setSocketMemory(roots, join(id, 'box', 'work'), Math.max(leastSocketsMiB, Math.ceil(limits.memoryMiB / 4)));
  // A new process starts in the agent's cgroup. The limit of the box bounds both together.
  writeFileSync(join(roots.pids, id, 'box', 'pids.max'), String(maxTasks + agentTasks(limits)));
  writeFileSync(join(roots.pids, id, 'box', 'agent', 'pids.max'), String(agentTasks(limits)));
  writeFileSync(join(roots.pids, id, 'box', 'work', 'pids.max'), String(maxTasks));
}

/** gVisor's kernel counts the computer's tasks itself. Each needs a few tasks of the host. */
function wholeLimits({ memoryMiB, maxTasks }: ComputerLimits) {
  return { memoryMiB: memoryMiB + agentMemoryMiB + sentryMemoryMiB, maxTasks: maxTasks * 4 + sentryTasks };
}

/** Limits all computers together. Returns a complaint if running computers already use more. */
export function limitRoots(roots: CgroupRoots, { memoryMiB, tasks }: HostLimits): { missing: string } | undefined {
  writeFileSync(join(roots.pids, 'pids.max'), String(tasks));
  try {
    setMemory(roots, '', memoryMiB);
    return undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
    return {
      missing: `computers use more than ${memoryMiB} MiB together; that limit holds once the host starts with less`,
    };
  }
}

/**
 * Limits the holder's CPU to half of its computer's, because the holder works for it (output, files, screens), but
 * never below a floor that keeps small computers usable.
 */
export function limitHolderCpu(roots: CgroupRoots, id: string, { cpuMilli }: ComputerLimits): void {
  setCpu(roots, join(id, 'holder'), Math.max(leastHolderMilli, cpuMilli / 2) * (periodUs / 1_000));
}

function setCpu({ version, cpu }: CgroupRoots, path: string, quotaUs: number): void {
  const quota = String(Math.round(quotaUs));
  if (version === 2) {
    writeFileSync(join(cpu, path, 'cpu.max'), `${quota} ${periodUs}`);
  } else {
    writeFileSync(join(cpu, path, 'cpu.cfs_period_us'), String(periodUs));
    writeFileSync(join(cpu, path, 'cpu.cfs_quota_us'), quota);
  }
}

function setMemory({ version, memory }: CgroupRoots, path: string, mebibytes: number): void {
  const folder = join(memory, path);
  // In v1, an earlier limit of memory and swap together would refuse a larger memory limit.
  if (version === 1) {
    ifThere(() => writeFileSync(join(folder, 'memory.memsw.limit_in_bytes'), '-1', { flag: 'r+' }));
  }
  writeFileSync(join(folder, version === 2 ? 'memory.max' : 'memory.limit_in_bytes'), inMiB(mebibytes));
  // These files exist only if the kernel accounts for swap.
  ifThere(() => {
    if (version === 2) writeFileSync(join(folder, 'memory.swap.max'), '0', { flag: 'r+' });
    else writeFileSync(join(folder, 'memory.memsw.limit_in_bytes'), inMiB(mebibytes), { flag: 'r+' });
  });
}

/** Limits the memory of TCP and UDP sockets. v2 counts it as memory; v1 has a separate limit, which must be set. */
function setSocketMemory({ version, memory }: CgroupRoots, path: string, mebibytes: number): void {
  if (version === 2) return;
  ifThere(() => writeFileSync(join(memory, path, socketLimit), inMiB(mebibytes), { flag: 'r+' }));
}

/**
 * Lets the holder, which runs as the computer's user, move processes between the two cgroups of the box and from its
 * own cgroup into them, and nowhere else.
 */
export function holderCgroups(roots: CgroupRoots, id: string, uid: number, kind: BoxKind): HolderCgroups {
  const procs = (path: string) => folders(roots).map((root) => join(root, id, path, 'cgroup.procs'));
  const oom = roots.version === 2 ? 'memory.events' : 'memory.oom_control';
  const workOom = join(roots.memory, id, 'box', 'work', oom);
  if (kind === 'whole') return { settle: null, workOom };
  // v2 requires write access to the nearest common folder
  const shared = roots.version === 2 ? [...procs('box'), ...procs('')] : [];
  for (const file of [...shared, ...procs('box/agent'), ...procs('box/work')]) chownSync(file, uid, uid);
  return {
    settle: { agentProcs: join(roots.memory, id, 'box', 'agent', 'cgroup.procs'), workProcs: procs('box/work') },
    workOom,
  };
}

export function moveTo(
  roots: CgroupRoots,
  id: string,
  path: 'holder' | 'box/agent' | 'box/work',
  pids: number[],
): void {
  for (const root of folders(roots)) {
    for (const pid of pids) writeFileSync(join(root, id, path, 'cgroup.procs'), String(pid));
  }
}

/** The pids of a computer, including its holder. */
export function pidsIn(roots: CgroupRoots, id: string): number[] {
  const read = (path: string) => ifThere(() => readFileSync(join(roots.freezer, id, path, 'cgroup.procs'), 'utf8'));
  return leaves.flatMap((path) => (read(path) ?? '').split('\n').filter(Boolean).map(Number));
}

export function setFrozen(roots: CgroupRoots, id: string, frozen: boolean): void {
  const folder = join(roots.freezer, id, 'box');
  if (roots.version === 2) writeFileSync(join(folder, 'cgroup.freeze'), frozen ? '1' : '0');
  else writeFileSync(join(folder, 'freezer.state'), frozen ? 'FROZEN' : 'THAWED');
}

/** Whether everything in a computer's box has stopped. False if there is no such computer. */
export function isFrozen(roots: CgroupRoots, id: string): boolean {
  const [file, frozen] =
    roots.version === 2 ? (['cgroup.events', /^frozen 1$/m] as const) : (['freezer.state', /^FROZEN$/m] as const);
  return frozen.test(ifThere(() => readFileSync(join(roots.freezer, id, 'box', file), 'utf8')) ?? '');
}

/** Kills all processes once. In v1, freezing first stops processes that fork faster than their pids are read. */
export function killOnce(roots: CgroupRoots, id: string): void {
  if (roots.version === 2) {
    ifThere(() => writeFileSync(join(roots.freezer, id, 'cgroup.kill'), '1', { flag: 'r+' }));
    return;
  }
  ifThere(() => setFrozen(roots, id, true));
  for (const pid of pidsIn(roots, id)) ifThere(() => process.kill(pid, 'SIGKILL'));
  ifThere(() => setFrozen(roots, id, false)); // frozen processes get the signal only now
}

/** Removes the empty cgroups. Returns false while a process is in one. */
export function removeComputerCgroup(roots: CgroupRoots, id: string): boolean {
  return folders(roots).every((root) => [...leaves, 'box', ''].every((path) => removed(join(root, id, path))));
}

/** Removes the roots that are empty. */
export function removeRoots(roots: CgroupRoots): void {
  for (const root of folders(roots)) removed(root);
}

function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false;
    throw error;
  }
}

export function listComputerCgroups(roots: CgroupRoots): string[] {
  const names = folders(roots).flatMap((root) => ifThere(() => readdirSync(root, { withFileTypes: true })) ?? []);
  return [...new Set(names.filter((entry) => entry.isDirectory()).map((entry) => entry.name))];
}
