import { chownSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HolderCgroups } from '../../protocol/holderSpec.ts';
import { ifThere } from '../../system/ifThere.ts';
import type { ComputerLimits } from '../../types.ts';
import type { HostLimits } from '../machine/machine.ts';
import { type CgroupRoots, enableControllers, folders } from './cgroupRoots.ts';

/**
 * What the sandbox itself may use beside the computer’s limits: bwrap, the agent, and a thread of the agent’s for each
 * terminal.
 */
export const agentTasks = ({ maxProcesses }: Pick<ComputerLimits, 'maxProcesses'>) => 32 + maxProcesses;
const agentMemoryMiB = 128;
/** The holder reads what a computer says, so it is bounded as well. */
const holderMemoryMiB = 512;
const leastHolderMilli = 250;
const leastSocketsMiB = 32;
/** gVisor’s kernel, and its view of the home’s files. */
const sentryMemoryMiB = 128;
const sentryTasks = 256;
const periodUs = 100_000;
/** Not in every kernel’s v1. */
export const socketLimit = 'memory.kmem.tcp.limit_in_bytes';

/** Whether the agent can be told from its work; else one cgroup, `work`, has all. */
export type BoxKind = 'apart' | 'whole';

/**
 * The cgroups of one computer: `holder`, and `box` with all that is inside, in which `agent` is apart from `work`, so
 * that neither a fork bomb nor the OOM killer takes the agent. The freezer is the box's.
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
  // What has just been started is among the agent’s for a moment: together they are bounded by the box.
  writeFileSync(join(roots.pids, id, 'box', 'pids.max'), String(maxTasks + agentTasks(limits)));
  writeFileSync(join(roots.pids, id, 'box', 'agent', 'pids.max'), String(agentTasks(limits)));
  writeFileSync(join(roots.pids, id, 'box', 'work', 'pids.max'), String(maxTasks));
}

/** Inside, the sandbox’s own kernel counts the tasks, each of which is a few of the host’s. */
function wholeLimits({ memoryMiB, maxTasks }: ComputerLimits) {
  return { memoryMiB: memoryMiB + agentMemoryMiB + sentryMemoryMiB, maxTasks: maxTasks * 4 + sentryTasks };
}

/** What all computers together may have. Says so where those that run have more already. */
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
 * What a holder does is done for its computer: output written, files read, screens drawn. It may use half as much CPU
 * as the computer, but never so little that one of a tenth of a core could hardly be looked at.
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
  // An earlier limit with swap would refuse a larger one without.
  if (version === 1) {
    ifThere(() => writeFileSync(join(folder, 'memory.memsw.limit_in_bytes'), '-1', { flag: 'r+' }));
  }
  writeFileSync(join(folder, version === 2 ? 'memory.max' : 'memory.limit_in_bytes'), inMiB(mebibytes));
  // Only where swap is accounted for.
  ifThere(() => {
    if (version === 2) writeFileSync(join(folder, 'memory.swap.max'), '0', { flag: 'r+' });
    else writeFileSync(join(folder, 'memory.memsw.limit_in_bytes'), inMiB(mebibytes), { flag: 'r+' });
  });
}

/** What TCP and UDP keep is memory like any other in v2. In v1 it has a limit of its own, and only where one is set. */
function setSocketMemory({ version, memory }: CgroupRoots, path: string, mebibytes: number): void {
  if (version === 2) return;
  ifThere(() => writeFileSync(join(memory, path, socketLimit), inMiB(mebibytes), { flag: 'r+' }));
}

/**
 * Lets the holder, which runs as the computer’s own user, move processes between the two cgroups in the box, and from
 * its own into them; no more.
 */
export function holderCgroups(roots: CgroupRoots, id: string, uid: number, kind: BoxKind): HolderCgroups {
  const procs = (path: string) => folders(roots).map((root) => join(root, id, path, 'cgroup.procs'));
  const oom = roots.version === 2 ? 'memory.events' : 'memory.oom_control';
  const workOom = join(roots.memory, id, 'box', 'work', oom);
  if (kind === 'whole') return { settle: null, workOom };
  // v2 asks for the right to the nearest common folder
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

/** Every process of a computer, its holder among them if asked for. */
export function pidsIn(roots: CgroupRoots, id: string, paths: string[] = leaves): number[] {
  const read = (path: string) => ifThere(() => readFileSync(join(roots.freezer, id, path, 'cgroup.procs'), 'utf8'));
  return paths.flatMap((path) => (read(path) ?? '').split('\n').filter(Boolean).map(Number));
}

export function setFrozen(roots: CgroupRoots, id: string, frozen: boolean): void {
  const folder = join(roots.freezer, id, 'box');
  if (roots.version === 2) writeFileSync(join(folder, 'cgroup.freeze'), frozen ? '1' : '0');
  else writeFileSync(join(folder, 'freezer.state'), frozen ? 'FROZEN' : 'THAWED');
}

/** Undefined where there is no such computer. `wanted` holds from the moment it was asked for, `reached` from the end. */
export function readFrozen(roots: CgroupRoots, id: string): { wanted: boolean; reached: boolean } | undefined {
  const folder = join(roots.freezer, id, 'box');
  return ifThere(() => {
    if (roots.version === 2) {
      const reached = /^frozen 1$/m.test(readFileSync(join(folder, 'cgroup.events'), 'utf8'));
      return { wanted: readFileSync(join(folder, 'cgroup.freeze'), 'utf8').trim() === '1', reached };
    }
    const wanted = readFileSync(join(folder, 'freezer.self_freezing'), 'utf8').trim() === '1';
    return { wanted, reached: readFileSync(join(folder, 'freezer.state'), 'utf8').trim() === 'FROZEN' };
  });
}

/** One round of killing; what forks faster than it is read is stopped first. */
export function killOnce(roots: CgroupRoots, id: string): void {
  if (roots.version === 2) {
    ifThere(() => writeFileSync(join(roots.freezer, id, 'cgroup.kill'), '1', { flag: 'r+' }));
    return;
  }
  ifThere(() => setFrozen(roots, id, true));
  for (const pid of pidsIn(roots, id)) ifThere(() => process.kill(pid, 'SIGKILL'));
  ifThere(() => setFrozen(roots, id, false)); // the signal reaches what is frozen only then
}

/** Removes what is empty. False while something is still in it. */
export function removeComputerCgroup(roots: CgroupRoots, id: string): boolean {
  return folders(roots).every((root) => [...leaves, 'box', ''].every((path) => removed(join(root, id, path))));
}

/** Those that are empty. */
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
