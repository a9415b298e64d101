import type { DiskRoom } from './room.ts';

/** What a copy is called until it is finished. */
export const unfinished = (home: string) => `${home}.fork`;

/** Where the homes of computers are, and what keeps each within its limit. */
export interface Disks {
  /** `limited`: the file system refuses what is over the limit. Else the host looks at what is used from time to time. */
  kind: 'limited' | 'watched';
  /**
   * Makes a home that belongs to `uid` (undefined: to us), or leaves the one that is there, and sets its limit (undefined:
   * none yet).
   */
  create(home: string, options: { uid: number | undefined; limitMiB: number | undefined }): Promise<void>;
  /** Begins a copy, of a home that changes no more until this is done; what was begun before is removed. */
  snapshot(from: string, to: string, signal: AbortSignal): Promise<void>;
  /** Gives what was begun to `uid`, however long that takes, and sets its limit: then it is there as a whole. */
  finish(to: string, options: { uid: number | undefined; limitMiB: number; signal: AbortSignal }): Promise<void>;
  /** What all homes together have and may still take. */
  room(): DiskRoom;
  usedBytes(home: string): Promise<number>;
  remove(home: string): Promise<void>;
  /** Gives back what was mounted. Nothing may use a home any more. */
  close(): Promise<void>;
}
