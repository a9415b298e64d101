import type { HolderCgroups } from '../../protocol/holderSpec.ts';
import type { Stamp } from '../../system/stamps.ts';
import type { ProcessUsage } from '../../types.ts';
import type { ComputerRecord } from '../records.ts';

type MaybePromise<T> = T | Promise<T>;

/** Holds the processes of a computer together: cgroups, or without them the descendants of its sandbox. */
export interface Confinement {
  kind: 'cgroups' | 'processes';
  /** Makes it with its limits, for a start. */
  prepare(record: ComputerRecord): HolderCgroups | null;
  /** Called before the holder releases its sandbox. */
  joinHolder(computerId: string, pid: number): void;
  /** Called before the sandbox goes on. */
  joinSandbox(computerId: string, pids: number[]): void;
  /** Limits the holder's CPU once it has started its computer. Nothing waits for the holder any more. */
  settleHolder(record: ComputerRecord): void;
  freeze(record: ComputerRecord): MaybePromise<void>;
  thaw(record: ComputerRecord): MaybePromise<void>;
  isFrozen(record: ComputerRecord): MaybePromise<boolean>;
  /** Kills all of it, including the holder. Called until nothing is `left`. */
  kill(record: ComputerRecord): void;
  left(record: ComputerRecord): Stamp[];
  /** Removes the empty confinement. False while something is in it. */
  remove(computerId: string): MaybePromise<boolean>;
  /** Throws where the computer is gone. */
  usage(record: ComputerRecord): MaybePromise<ProcessUsage>;
  /** The names of all sandboxes, for the sweep. */
  list(): MaybePromise<string[]>;
  /** Removes the confinement's own roots when no computer is left. */
  close(): void;
}
