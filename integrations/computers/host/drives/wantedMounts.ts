import type { DriveMount } from '../../drives/daemon.ts';

/** What a host says of the drive in a computer. */
export interface DriveReport {
  /** What programs may do. Null if the computer does not have its drive now. */
  access: 'write' | 'read' | 'none' | null;
  pendingFiles: number;
  error: string | null;
}

interface Wanted {
  mount: DriveMount;
  report: DriveReport | undefined;
}

interface Options {
  onReport: ((computerId: string, report: DriveReport) => void) | undefined;
  log: (level: 'warn', facts: Record<string, unknown>, message: string) => void;
}

export const nothing: DriveReport = { access: null, pendingFiles: 0, error: null };

/** The drives that should be mounted, by computer, and what was last said of each. */
export class WantedMounts {
  readonly #options: Options;
  readonly #wanted = new Map<string, Wanted>();

  constructor(options: Options) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#wanted.size === 0;
  }

  has = (computerId: string) => this.#wanted.has(computerId);

  add(computerId: string, mount: DriveMount): void {
    this.#wanted.set(computerId, { mount, report: undefined });
  }

  delete = (computerId: string) => this.#wanted.delete(computerId);

  /** Each of them. One that is deleted meanwhile is left out. */
  *[Symbol.iterator](): Generator<[computerId: string, mount: DriveMount]> {
    for (const [computerId, { mount }] of this.#wanted) yield [computerId, mount];
  }

  /** Passes a report on, if it is news. Returns whether it is. */
  tell(computerId: string, report: DriveReport): boolean {
    const wanted = this.#wanted.get(computerId);
    if (JSON.stringify(wanted?.report) === JSON.stringify(report)) return false;
    if (wanted !== undefined) wanted.report = report;
    this.#options.onReport?.(computerId, report);
    return true;
  }

  failed(computerId: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    const report = { ...nothing, error: `The drive cannot be used now: ${reason}.`.slice(0, 500) };
    if (!this.tell(computerId, report)) return;
    this.#options.log('warn', { err: error, computerId }, 'The drive of a computer cannot be used; trying again');
  }
}
