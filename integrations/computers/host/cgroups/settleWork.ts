import { readFileSync, writeFileSync } from 'node:fs';
import type { HolderCgroups } from '../holderSpec.ts';

/**
 * Moves what the agent has started from its own cgroup to the one for work; `keep` are the sandbox's own processes. A
 * process is in the agent's until then, which has few tasks and little memory, so nothing gets far in that time.
 */
export function settleWork({ agentProcs, workProcs }: HolderCgroups, keep: ReadonlySet<number>): void {
  // What forks while it is moved leaves a child behind: look again, a few times.
  for (let round = 0; round < 5; round += 1) {
    const strays = readPids(agentProcs).filter((pid) => !keep.has(pid));
    if (strays.length === 0) return;
    for (const pid of strays) for (const file of workProcs) tryToMove(file, pid);
  }
}

/** The sandbox's own processes: those in the agent's cgroup before it starts anything. */
export function readPids(procsFile: string): number[] {
  return readFileSync(procsFile, 'utf8').split('\n').filter(Boolean).map(Number);
}

function tryToMove(file: string, pid: number): void {
  try {
    writeFileSync(file, String(pid));
  } catch (error) {
    // It has ended; or there is no room for it among the work: the next look tries again.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EAGAIN' && code !== 'ENOENT' && code !== 'EACCES') throw error;
  }
}

/** How often the OOM killer has ended a process of this computer. */
export function readOomKills({ workOom }: HolderCgroups): number {
  return Number(/^oom_kill (\d+)$/m.exec(readFileSync(workOom, 'utf8'))?.[1] ?? 0);
}
