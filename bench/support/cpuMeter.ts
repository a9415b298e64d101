import { cpuByProgram } from './processTree.ts';

/** Measures the CPU time of a process and its descendants while some work runs. */
export class CpuMeter {
  private readonly rootPid: number;
  private readonly atriumPid: number;
  private readonly used = new Map<string, number>();

  /** Never counts the process that measures. */
  constructor({ rootPid, atriumPid }: { rootPid: number; atriumPid: number }) {
    this.rootPid = rootPid;
    this.atriumPid = atriumPid;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    const before = this.read();
    const result = await work();
    for (const [part, seconds] of this.read())
      this.used.set(part, this.secondsOf(part) + seconds - (before.get(part) ?? 0));
    return result;
  }

  /** CPU seconds of a part: `node` is Atrium's own process, others are named by their program. */
  secondsOf(part: string): number {
    return this.used.get(part) ?? 0;
  }

  /** CPU milliseconds for each of `count`, over all programs. */
  eachMs(count: number): number {
    return ([...this.used.values()].reduce((sum, seconds) => sum + seconds, 0) / count) * 1_000;
  }

  /** CPU time for each of `count`, such as `12.3 ms of CPU: node 9.1, mariadbd 3.2`. */
  each(count: number): string {
    const each = [...this.used].map(([part, seconds]) => [part, (seconds / count) * 1_000] as const);
    const parts = each.filter(([, ms]) => ms >= 0.05).sort(([, a], [, b]) => b - a);
    return `${this.eachMs(count).toFixed(1)} ms of CPU: ${parts.map(([part, ms]) => `${part} ${ms.toFixed(1)}`).join(', ')}`;
  }

  private read(): Map<string, number> {
    const cpu = new Map<string, number>();
    for (const [pid, { program, seconds }] of cpuByProgram(this.rootPid)) {
      if (pid === process.pid) continue;
      const part = pid === this.atriumPid ? 'node' : program;
      cpu.set(part, (cpu.get(part) ?? 0) + seconds);
    }
    return cpu;
  }
}
