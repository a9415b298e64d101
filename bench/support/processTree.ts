import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second everywhere that Node runs. */
const ticksPerSecond = 100;
const bytesPerPage = 4096;

export interface TreeUsage {
  cpuSeconds: number;
  residentMiB: number;
}

/** CPU time and memory of a process and all its descendants, from /proc. */
export function usageOfTree(rootPid: number): TreeUsage {
  const stats = new Map<number, { parent: number; ticks: number; pages: number }>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      // The command's name is in parentheses and may hold anything, spaces too.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const at = (field: number) => Number(fields[field - 3]);
      stats.set(Number(name), { parent: at(4), ticks: at(14) + at(15), pages: at(24) });
    } catch {
      // It has ended since.
    }
  }
  const usage: TreeUsage = { cpuSeconds: 0, residentMiB: 0 };
  for (const [pid, { ticks, pages }] of stats) {
    if (!descendsFrom(pid, rootPid)) continue;
    usage.cpuSeconds += ticks / ticksPerSecond;
    usage.residentMiB += (pages * bytesPerPage) / 1024 / 1024;
  }
  return usage;

  function descendsFrom(pid: number, ancestor: number): boolean {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = stats.get(at)?.parent) {
      if (at === ancestor) return true;
    }
    return false;
  }
}
