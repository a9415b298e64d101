import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const isLinux = process.platform === 'linux';
/** Linux offers the usage in files; other systems need a program for it. */
const intervalMs = isLinux ? 50 : 250;
/** USER_HZ, Linux's unit for programs, whatever the kernel's own clock rate is. */
const ticksPerSecond = 100;

interface Usage {
  residentBytes: number;
  processorMs: number;
}

/**
 * Polls a process until disposed of, and reports once when it holds more memory than `residentBytes`, or has computed
 * for more than `processorMs` since it was first looked at. The kernel's own limits are wider (commandLine.ts).
 */
export function watchUsage(pid: number | undefined, limits: Usage, onExcess: () => void): Disposable {
  let timer: NodeJS.Timeout | undefined;
  let isOver = pid === undefined;
  let before: number | undefined;
  const look = async () => {
    const usage = await usageOf(pid as number).catch(() => undefined);
    if (isOver) return;
    before ??= usage?.processorMs;
    const isExcess =
      usage !== undefined &&
      (usage.residentBytes > limits.residentBytes || usage.processorMs - (before ?? 0) > limits.processorMs);
    if (isExcess) onExcess();
    else timer = setTimeout(look, intervalMs);
  };
  if (!isOver) void look();
  return {
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

async function usageOf(pid: number): Promise<Usage> {
  if (!isLinux) {
    return usageFromPs((await run('/bin/ps', ['-o', 'rss=,time=', '-p', String(pid)], { timeout: 5_000 })).stdout);
  }
  const [status, stat] = await Promise.all([
    readFile(`/proc/${pid}/status`, 'utf8'),
    readFile(`/proc/${pid}/stat`, 'utf8'),
  ]);
  // The program's name, in parentheses, may have spaces in it; the times are the 14th and the 15th field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    residentBytes: Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024,
    processorMs: ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond,
  };
}

/** Kibibytes, and `[[days-]hours:]minutes:seconds` with or without a fraction. */
export function usageFromPs(line: string): Usage {
  const [kibibytes, time = ''] = line.trim().split(/\s+/);
  const [days, clock] = time.includes('-') ? time.split('-') : ['0', time];
  const seconds = (clock ?? '').split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return { residentBytes: Number(kibibytes) * 1_024, processorMs: (Number(days) * 86_400 + seconds) * 1_000 };
}
