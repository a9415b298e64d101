import type { ComputerLimits } from '../../types.ts';

/** Of /proc: what tells programs how large their machine is. The holder writes them (`holder/machineView.ts`). */
export const viewFiles = ['meminfo', 'cpuinfo', 'stat'] as const;

/** As programs count them: a part of one is one. */
export function coresOf({ cpuMilli }: Pick<ComputerLimits, 'cpuMilli'>): number {
  return Math.max(1, Math.ceil(cpuMilli / 1_000));
}

/** Variables that say the limits of a computer, for programs that look nowhere else. `nproc` reads the first. */
export function limitVariables(
  limits: Pick<ComputerLimits, 'cpuMilli' | 'memoryMiB' | 'diskMiB'>,
): Record<string, string> {
  const cores = String(coresOf(limits));
  return {
    OMP_NUM_THREADS: cores,
    GOMAXPROCS: cores,
    ATRIUM_CPUS: String(limits.cpuMilli / 1_000),
    ATRIUM_MEMORY_MIB: String(limits.memoryMiB),
    ATRIUM_DISK_MIB: String(limits.diskMiB),
  };
}
