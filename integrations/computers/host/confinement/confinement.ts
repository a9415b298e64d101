import type { HolderCgroups } from '../../protocol/holderSpec.ts';
import type { Stamp } from '../../system/stamps.ts';
import type { ComputerRecord } from '../records.ts';

type MaybePromise<T> = T | Promise<T>;

/** What keeps the processes of a computer together: cgroups, or where there are none, what descends from its sandbox. */
export interface Confinement {
  kind: 'cgroups' | 'processes';
  /** Makes it, with its limits, for a start. */
  prepare(record: ComputerRecord): HolderCgroups | null;
  /** Before what it makes is released. */
  joinHolder(computerId: string, pid: number): void;
  /** Before the sandbox goes on. */
  joinSandbox(computerId: string, pids: number[]): void;
  /** Limits the CPU of the holder too, once it has started its computer: nobody waits for that any longer. */
  settleHolder(record: ComputerRecord): void;
  freeze(record: ComputerRecord): MaybePromise<void>;
  thaw(record: ComputerRecord): MaybePromise<void>;
  /** Whether everything inside stands still. */
  isFrozen(record: ComputerRecord): MaybePromise<boolean>;
  /** Tells all of it to end, the holder too. Asked again until nothing is `left`. */
  kill(record: ComputerRecord): void;
  left(record: ComputerRecord): Stamp[];
  /** Removes what is empty; false while it is not. */
  remove(computerId: string): MaybePromise<boolean>;
  /** Throws where nothing of it is there any more. */
  usage(record: ComputerRecord): MaybePromise<ProcessUsage>;
  /** All that there are, for the sweep. */
  list(): MaybePromise<string[]>;
  /** Gives back what it has made of its own, where no computer is left. */
  close(): void;
}

export interface ProcessUsage {
  cpuSeconds: number;
  memoryBytes: number;
  memoryPeakBytes: number;
  tasks: number;
  oomKills: number;
}
