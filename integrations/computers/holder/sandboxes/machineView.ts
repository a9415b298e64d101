import { closeSync, constants, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { coresOf, viewFiles } from '../../drivers/bubblewrap/view.ts';
import { ifThere } from '../../system/ifThere.ts';
import type { ComputerLimits } from '../../types.ts';

const refreshMs = 5_000;

interface ViewOptions {
  folder: string;
  limits: Pick<ComputerLimits, 'cpuMilli' | 'memoryMiB'>;
  /** A file in the memory cgroup of the computer's work. Undefined if there is none. */
  workOom: string | undefined;
  isBusy: () => boolean;
}

/**
 * Shows programs the computer's memory and processors instead of the host's, because programs ask before they use them.
 * Written before the sandbox is made, and every few seconds while a process runs.
 */
export class MachineView {
  readonly #timer: NodeJS.Timeout;

  constructor({ folder, limits, workOom, isBusy }: ViewOptions) {
    this.#timer = setInterval(() => {
      if (!isBusy()) return;
      try {
        const usedBytes = workOom === undefined ? 0 : usedIn(dirname(workOom));
        for (const name of ['meminfo', 'stat'] as const) write(join(folder, name), textOf(name, limits, usedBytes));
      } catch {
        // A full disk must not end a computer. Its view is out of date until a later refresh succeeds.
      }
    }, refreshMs).unref();
  }

  static begin({ folder, limits }: Pick<ViewOptions, 'folder' | 'limits'>): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of viewFiles) write(join(folder, name), textOf(name, limits, 0));
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

function textOf(name: (typeof viewFiles)[number], limits: ViewOptions['limits'], usedBytes: number): string {
  if (name === 'meminfo') return meminfoOf(limits.memoryMiB, usedBytes);
  const cores = coresOf(limits);
  const host = ifThere(() => readFileSync(`/proc/${name}`, 'utf8')) ?? '';
  if (name === 'cpuinfo') return `${host.split('\n\n').slice(0, cores).join('\n\n').trimEnd()}\n\n`;
  return host
    .split('\n')
    .filter((line) => Number(/^cpu(\d+) /.exec(line)?.[1] ?? 0) < cores)
    .join('\n');
}

/** Always the same length, so that a reader never sees half of an old and half of a new file. */
function meminfoOf(totalMiB: number, usedBytes: number): string {
  const totalKiB = totalMiB * 1_024;
  const free = Math.max(0, totalKiB - Math.ceil(usedBytes / 1_024));
  const shown = { MemTotal: totalKiB, MemFree: free, MemAvailable: free };
  const none =
    'Buffers Cached SwapCached Active Inactive SwapTotal SwapFree Dirty Writeback AnonPages Mapped Shmem Slab';
  const all = {
    ...shown,
    ...Object.fromEntries(none.split(' ').map((name) => [name, 0])),
    SReclaimable: 0,
    SUnreclaim: 0,
  };
  return Object.entries(all)
    .map(([name, kibibytes]) => `${`${name}:`.padEnd(15)} ${String(kibibytes).padStart(8)} kB\n`)
    .join('');
}

/** Used memory without file caches, which the kernel drops when memory is needed. */
function usedIn(cgroup: string): number {
  const read = (name: string) => ifThere(() => readFileSync(join(cgroup, name), 'utf8'));
  const total = Number(read('memory.current') ?? read('memory.usage_in_bytes') ?? 0);
  const files = /^(?:total_)?inactive_file (\d+)$/m.exec(read('memory.stat') ?? '')?.[1] ?? 0;
  return Math.max(0, total - Number(files));
}

/** Writes in place: the sandbox has a bind mount of the file itself, not of its name. */
function write(file: string, text: string): void {
  const place = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    const bytes = Buffer.from(text);
    writeSync(place, bytes, 0, bytes.length, 0);
    ftruncateSync(place, bytes.length);
  } finally {
    closeSync(place);
  }
}
