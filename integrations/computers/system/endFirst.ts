import { writeFileSync } from 'node:fs';
import { ifThere } from './ifThere.ts';

/** Between what the machine needs (0) and what a computer starts (500, by its agent). */
const score = '300';

/**
 * Where the machine runs out of memory, computers are ended before their holders, the database and Atrium itself. What
 * root has set, nothing that descends from these processes can lower.
 */
export function endFirst(pids: number[]): void {
  for (const pid of pids) {
    try {
      ifThere(() => writeFileSync(`/proc/${pid}/oom_score_adj`, score));
    } catch {
      // Without root, a sandbox that is being made belongs to nobody whom we may change.
    }
  }
}
