import { readFileSync, writeFileSync } from 'node:fs';
import type { SettleFiles } from '../../protocol/holderSpec.ts';
import { ifThere } from '../../system/ifThere.ts';

const rounds = 5;
const soonMs = 20;
const laterMs = 1_000;

/**
 * Moves what the agent has started from its own cgroup to the one for work; `keep` are the sandbox's own processes. A
 * process is in the agent's until then, which has few tasks and little memory, so nothing gets far in that time. What
 * forks while it is moved leaves a child behind: it is looked for again, until there is none.
 */
export class WorkSettler {
  readonly #cgroups: SettleFiles;
  readonly #own: () => ReadonlySet<number>;
  #again: NodeJS.Timeout | undefined;

  constructor(cgroups: SettleFiles, own: () => ReadonlySet<number>) {
    this.#cgroups = cgroups;
    this.#own = own;
  }

  settle(againMs = soonMs): void {
    clearTimeout(this.#again);
    if (settleWork(this.#cgroups, this.#own())) return;
    this.#again = setTimeout(() => this.settle(Math.min(againMs * 2, laterMs)), againMs).unref();
  }
}

/** Whether all of it has been moved, in a few rounds. */
export function settleWork({ agentProcs, workProcs }: SettleFiles, keep: ReadonlySet<number>): boolean {
  for (let round = 0; round < rounds; round += 1) {
    const strays = readPids(agentProcs).filter((pid) => !keep.has(pid));
    if (strays.length === 0) return true;
    for (const pid of strays) for (const file of workProcs) tryToMove(file, pid);
  }
  return false;
}

/** The sandbox's own processes: those in the agent's cgroup before it starts anything. */
export function readPids(procsFile: string): number[] {
  return readFileSync(procsFile, 'utf8').split('\n').filter(Boolean).map(Number);
}

function tryToMove(file: string, pid: number): void {
  try {
    writeFileSync(file, String(pid));
  } catch {
    // It has ended, or cannot be moved now: the next look tries again. Nothing of this may end the computer.
  }
}

/** How often the OOM killer has ended a process of this computer. */
export function readOomKills(workOom: string): number {
  return Number(/^oom_kill (\d+)$/m.exec(ifThere(() => readFileSync(workOom, 'utf8')) ?? '')?.[1] ?? 0);
}
