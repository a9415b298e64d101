import type { HolderCgroups } from '../../protocol/holderSpec.ts';
import type { Stamp } from '../../system/stamps.ts';
import type { ProcessUsage } from '../../types.ts';
import type { ComputerRecord } from '../records.ts';

type MaybePromise<T> = T | Promise<T>;

/**
 * Groups a computer's processes, to limit, freeze and kill them: by cgroups, or without cgroups by its user or sandbox.
 */
export interface Confinement {
  kind: 'cgroups' | 'processes';
  /** Makes the confinement with its limits, before a start. */
  prepare(record: ComputerRecord): HolderCgroups | null;
  /** Called before the holder releases its sandbox. */
  joinHolder(computerId: string, pid: number): void;
  /** Called before the sandbox goes on. */
  joinSandbox(computerId: string, pids: number[]): void;
  /** Limits the holder's CPU once the computer runs. By then nothing waits for the holder any more. */
  settleHolder(record: ComputerRecord): void;
  freeze(record: ComputerRecord): MaybePromise<void>;
  thaw(record: ComputerRecord): MaybePromise<void>;
  isFrozen(record: ComputerRecord): MaybePromise<boolean>;
  /** Kills all processes, including the holder. Called until none is `left`. */
  kill(record: ComputerRecord): void;
  left(record: ComputerRecord): Stamp[];
  /** Removes the empty confinement. Returns false while a process is in it. */
  remove(computerId: string): MaybePromise<boolean>;
  /** Throws if the computer is gone. */
  usage(record: ComputerRecord): MaybePromise<ProcessUsage>;
  /** The names of all sandboxes, for the sweep. */
  list(): MaybePromise<string[]>;
  /** Removes the confinement's own roots when no computer is left. */
  close(): void;
}
