import { readFileSync } from 'node:fs';
import { ifThere } from '../../system/ifThere.ts';
import {
  isAlive,
  isStopped,
  killIfAlive,
  parentOf,
  processesOf,
  type Stamp,
  stampOf,
  treeOf,
  treesOf,
} from '../../system/stamps.ts';
import type { ComputerRecord } from '../records.ts';
import type { Confinement } from './confinement.ts';

const ticksPerSecond = 100;
const pageBytes = 4096;

/**
 * Confinement without cgroups. A computer's processes are those of its user. Without such a user, they are those in the
 * sandbox's pid namespace, which no process leaves: killing its first process ends them all. Nothing limits their use.
 */
export function treeConfinement(): Confinement {
  const roots = new Map<string, Stamp[]>();
  const join = (name: string, pids: number[]) => {
    const stamps = pids.flatMap((pid) => stampOf(pid) ?? []);
    roots.set(name, [...(roots.get(name) ?? []), ...stamps]);
  };
  /** Sandboxes on the computer's files belong to the same user. They end by themselves. */
  const beside = (name: string): Set<number> => {
    const others = [...roots].filter(([other]) => other !== name && computerOf(other) === computerOf(name));
    const stamps = others.flatMap(([, each]) => each);
    return new Set(stamps.length === 0 ? [] : treesOf(stamps).map(({ pid }) => pid));
  };
  const inside = ({ run }: ComputerRecord): Stamp[] => {
    if (run?.sandbox == null) return [];
    const { init, monitor } = run.sandbox;
    const sandbox = treeOf(init);
    // The holder's other children are cells.
    const known = new Set([run.holder?.pid, monitor.pid, parentOf(init.pid), ...sandbox.map(({ pid }) => pid)]);
    const cells = run.holder === null ? [] : treeOf(run.holder).filter(({ pid }) => !known.has(pid));
    return [...sandbox, ...cells];
  };
  const left = (record: ComputerRecord): Stamp[] => {
    if (record.uid !== null) {
      const others = beside(record.computerId);
      return processesOf(record.uid).filter(({ pid }) => !others.has(pid));
    }
    const { holder, sandbox } = record.run ?? {};
    return [
      ...inside(record),
      ...[holder, sandbox?.monitor].filter((stamp) => stamp != null && isAlive(stamp)),
    ] as Stamp[];
  };
  return {
    kind: 'processes',
    prepare: () => null,
    joinHolder: (name, pid) => join(name, [pid]),
    joinSandbox: join,
    settleHolder: () => undefined,
    freeze(record) {
      for (const stamp of inside(record)) killIfAlive(stamp, 'SIGSTOP');
    },
    thaw(record) {
      for (const stamp of inside(record)) killIfAlive(stamp, 'SIGCONT');
    },
    isFrozen: (record) => inside(record).every(isStopped),
    kill(record) {
      for (const stamp of left(record)) killIfAlive(stamp);
    },
    left,
    remove: (name) => {
      roots.delete(name);
      return true;
    },
    usage(record) {
      const all = inside(record).map(({ pid }) => ifThere(() => usageOf(pid)) ?? { cpuSeconds: 0, memoryBytes: 0 });
      const sum = (of: 'cpuSeconds' | 'memoryBytes') => all.reduce((total, one) => total + one[of], 0);
      const memoryBytes = sum('memoryBytes');
      return {
        cpuSeconds: sum('cpuSeconds'),
        memoryBytes,
        memoryPeakBytes: memoryBytes,
        tasks: all.length,
        oomKills: 0,
      };
    },
    list: () => [],
    close: () => undefined,
  };
}

/** The computer's id in a name: its own, or that of a sandbox on its files (`fileSandboxes.ts`). */
function computerOf(name: string): string {
  return name.split('.', 1)[0] ?? name;
}

/** The usage of one living process, including ended children that it has waited for. */
function usageOf(pid: number): { cpuSeconds: number; memoryBytes: number } {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0);
  return { cpuSeconds: ticks / ticksPerSecond, memoryBytes: Number(fields[21] ?? 0) * pageBytes };
}
