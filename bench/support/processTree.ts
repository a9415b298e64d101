import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts CPU time in 1/100 s on every platform of Node. */
const ticksPerSecond = 100;
const bytesPerPage = 4096;

interface Process {
  program: string;
  parent: number;
  ticks: number;
  pages: number;
}

/** Resident memory of a process and all its descendants, from /proc. */
export function residentMiBOfTree(rootPid: number): number {
  const pages = [...treeOf(rootPid).values()].reduce((sum, process) => sum + process.pages, 0);
  return (pages * bytesPerPage) / 1024 / 1024;
}

/** A process and all its descendants. */
export function pidsOfTree(rootPid: number): number[] {
  return [...treeOf(rootPid).keys()];
}

/** CPU time of a process and each of its descendants, with the names of their programs. */
export function cpuByProgram(rootPid: number): Map<number, { program: string; seconds: number }> {
  return new Map(
    Array.from(treeOf(rootPid), ([pid, { program, ticks }]) => [pid, { program, seconds: ticks / ticksPerSecond }]),
  );
}

function treeOf(rootPid: number): Map<number, Process> {
  const all = new Map<number, Process>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      // The command's name is in parentheses and may contain anything, even spaces.
      const nameEnd = stat.lastIndexOf(')');
      const fields = stat.slice(nameEnd + 2).split(' ');
      const at = (field: number) => Number(fields[field - 3]);
      const program = stat.slice(stat.indexOf('(') + 1, nameEnd);
      all.set(Number(name), { program, parent: at(4), ticks: at(14) + at(15), pages: at(24) });
    } catch {
      // The process has ended meanwhile.
    }
  }
  return new Map([...all].filter(([pid]) => descendsFrom(pid, rootPid)));

  function descendsFrom(pid: number, ancestor: number): boolean {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = all.get(at)?.parent) {
      if (at === ancestor) return true;
    }
    return false;
  }
}
