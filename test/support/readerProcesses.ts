import { readdirSync, readFileSync } from 'node:fs';

/** The reader processes that this process started. Linux only, like processes.ts. */
export function readerProcesses(parent = process.pid): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const [status, commandLine] = [read(pid, 'status'), read(pid, 'cmdline')];
      return (
        status.includes(`\nPPid:\t${parent}\n`) &&
        commandLine.includes('readers/program.ts') &&
        !/\nState:\tZ/.test(status)
      );
    });
}

/**
 * Measures the peak memory of any reader process in MiB, from now until `stop`. The kernel keeps the peak of each
 * process.
 */
export function watchPeak(): { stop(): number } {
  let peak = 0;
  const look = () => {
    for (const pid of readerProcesses()) {
      peak = Math.max(peak, Number(/VmHWM:\s+(\d+) kB/.exec(read(pid, 'status'))?.[1] ?? 0) / 1_024);
    }
  };
  const timer = setInterval(look, 20);
  return {
    stop() {
      look();
      clearInterval(timer);
      return peak;
    },
  };
}

/** The CPU time of a process so far, in milliseconds. */
export function processorMs(pid: number): number {
  const fields = read(pid, 'stat').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10;
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // it has ended meanwhile
  }
}
