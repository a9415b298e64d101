import { readFileSync, writeFileSync } from 'node:fs';
import type { SettleFiles } from '../../protocol/holderSpec.ts';
import { ifThere } from '../../system/ifThere.ts';

const rounds = 5;
const soonMs = 20;
const laterMs = 1_000;

/**
 * Moves new processes from the agent's cgroup to the one for work. `own` returns the sandbox's own processes, which
 * stay. Until it is moved, a process shares the agent's few tasks and little memory, so it cannot use more. A process
 * that forks while it is moved leaves a child behind, so we look again until none is left.
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

/** Returns whether all processes were moved within a few rounds. */
export function settleWork({ agentProcs, workProcs }: SettleFiles, keep: ReadonlySet<number>): boolean {
  for (let round = 0; round < rounds; round += 1) {
    const strays = readPids(agentProcs).filter((pid) => !keep.has(pid));
    if (strays.length === 0) return true;
    for (const pid of strays) for (const file of workProcs) tryToMove(file, pid);
  }
  return false;
}

export function readPids(procsFile: string): number[] {
  return readFileSync(procsFile, 'utf8').split('\n').filter(Boolean).map(Number);
}

function tryToMove(file: string, pid: number): void {
  try {
    writeFileSync(file, String(pid));
  } catch {
    // The process has ended, or cannot be moved now. The next round tries again. A failure must not end the computer.
  }
}

/** How often the OOM killer has killed a process of this computer. */
export function readOomKills(workOom: string): number {
  return Number(/^oom_kill (\d+)$/m.exec(ifThere(() => readFileSync(workOom, 'utf8')) ?? '')?.[1] ?? 0);
}
