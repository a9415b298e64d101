/** Types of fileLock.mjs, which is plain JavaScript because the bootstrap runs it before anything is installed. */

export interface ProcessStamp {
  pid: number;
  startTime: string;
}

export interface HeldLock {
  /** Safe to call twice. */
  release(): void;
}

export declare function processStamp(pid: number): ProcessStamp | undefined;
export declare function isRunning(stamp: ProcessStamp | undefined): boolean;
export declare function tryLock(
  path: string,
): { release: HeldLock['release'] } | { release?: undefined; owner: ProcessStamp };
export declare function waitForLock(
  path: string,
  options?: { signal?: AbortSignal; onWait?: (owner: ProcessStamp) => void },
): Promise<HeldLock>;
